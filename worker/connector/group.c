/* See group.h. A document has a kilobyte and more for each partition, so that no tree is made of it. */
#include "worker/connector/group.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/json_walk.h"

/* STATISTICS.md of librdkafka: "state" is whether the coordinator is reached, "join_state" whether the group is joined. */
static enum group_standing read_group(struct json_scan *scan, struct json_text group)
{
    enum group_standing joined = GROUP_JOINING;
    bool up = false;
    struct json_walk walk;
    struct json_text name;
    struct json_text value;

    if (!json_walk_object(&walk, scan, group)) {
        return GROUP_UNTOLD;
    }
    while (json_walk_member(&walk, &name, &value)) {
        if (json_text_is(name, "state")) {
            up = json_text_is(value, "\"up\"");
        } else if (json_text_is(name, "join_state") && json_text_is(value, "\"steady\"")) {
            joined = GROUP_MEMBER;
        } else if (json_text_is(name, "join_state") && json_text_is(value, "\"init\"")) {
            joined = GROUP_OUTSIDE;
        }
    }
    return up ? joined : GROUP_AWAY;
}

enum group_standing group_read(char *statistics, size_t size)
{
    struct json_scan scan = {0};
    struct json_value whole;
    struct json_walk walk;
    struct json_text name;
    struct json_text value;
    enum group_standing standing = GROUP_UNTOLD;
    const char *start = json_skip_blank(statistics, statistics + size);

    if (json_scan_value(&scan, start, statistics + size, &whole) != NULL &&
        json_walk_object(&walk, &scan, (struct json_text){statistics + (start - statistics), whole.size})) {
        while (json_walk_member(&walk, &name, &value)) {
            if (json_text_is(name, "cgrp")) {
                standing = read_group(&scan, value);
            }
        }
    }
    free(scan.bits);
    return standing;
}
