/* How a consumer stands with its group, as librdkafka's statistics tell it. */
#include "worker/connector/group.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static enum group_standing read_text(const char *text)
{
    char *copy = strdup(text);
    enum group_standing standing = group_read(copy, strlen(copy));

    free(copy);
    return standing;
}

#define DOCUMENT(group)                                                                                       \
    "{ \"name\": \"queen-s3#consumer-1\", \"type\": \"consumer\", \"brokers\":{ \"127.0.0.1:9092/1\": { "     \
    "\"name\":\"127.0.0.1:9092/1\", \"state\":\"DOWN\", \"toppars\":{ \"cgrp-0\": { \"partition\":0} } } }, " \
    "\"topics\":{ \"cgrp\": { \"topic\":\"cgrp\", \"state\": \"up\", \"join_state\": \"steady\" } } , " group \
    "\"tx\":12, \"rxmsg_bytes\":0}"
#define GROUP(state, join)                                                             \
    DOCUMENT("\"cgrp\": { \"state\": \"" state "\", \"stateage\": 7, \"join_state\": " \
             "\"" join "\", \"rebalance_reason\": \"a \\\"word\\\"\", \"assignment_size\": 0 },")

START_TEST(standings)
{
    static const struct {
        const char *text;
        enum group_standing standing;
    } cases[] = {
        {GROUP("up", "steady"), GROUP_MEMBER},
        {GROUP("up", "init"), GROUP_OUTSIDE},
        {GROUP("up", "wait-join"), GROUP_JOINING},
        {GROUP("up", "wait-assign-call"), GROUP_JOINING},
        {GROUP("query-coord", "steady"), GROUP_AWAY}, /* as it is for as long as the session may last */
        {GROUP("wait-broker-transport", "init"), GROUP_AWAY},
        {DOCUMENT(""), GROUP_UNTOLD},
        {DOCUMENT("\"cgrp\": 1,"), GROUP_UNTOLD},
        {"{ \"client_id\": \"one \"quoted\" as it is\" }", GROUP_UNTOLD},
        {"[]", GROUP_UNTOLD},
        {"", GROUP_UNTOLD},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(read_text(cases[i].text) == cases[i].standing, "%s", cases[i].text);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("group");
    TCase *cases = tcase_create("group");

    tcase_add_test(cases, standings);
    suite_add_tcase(suite, cases);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
