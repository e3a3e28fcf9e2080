/* The directory part of a key: path_template.h. */
#include "worker/connector/path_template.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/utf8.h"

static const char segment_open[] = "{topic_segment[";
#define SEGMENT_OPEN_SIZE (sizeof segment_open - 1)

#define SHOWN_MAX 120 /* of a topic or template in a message */

/* Reads `n]}`: the byte behind, or NULL. */
static const char *read_segment_number(const char *text, long *number)
{
    bool negative = *text == '-';
    const char *at = text + (negative ? 1 : 0);
    long value = 0;

    if (*at < '0' || *at > '9') {
        return NULL;
    }
    for (; *at >= '0' && *at <= '9'; at++) {
        if (value > (LONG_MAX - 9) / 10) {
            return NULL;
        }
        value = value * 10 + (*at - '0');
    }
    *number = negative ? -value : value;
    return at[0] == ']' && at[1] == '}' ? at + 2 : NULL;
}

int path_template_check(const char *text, struct error *error)
{
    for (const char *at = strstr(text, segment_open); at != NULL; at = strstr(at, segment_open)) {
        long number;
        at = read_segment_number(at + SEGMENT_OPEN_SIZE, &number);
        if (at == NULL) {
            return error_set(error, QS_ERROR_INPUT,
                             "path_template '%.*s': expected a whole number between the brackets of "
                             "{topic_segment[n]}, and both closed",
                             SHOWN_MAX, text);
        }
    }
    error_clear(error);
    return 0;
}

bool path_template_has_date(const char *text)
{
    return strstr(text, "{date}") != NULL || strstr(text, "{hour}") != NULL;
}

struct render {
    struct sink_slice topic;
    int32_t partition;
    uint64_t timestamp_ms;
    char *out;
    size_t size;
    size_t room;
};

static void put(struct render *render, const char *bytes, size_t size)
{
    if (size < render->room - render->size) {
        memcpy(render->out + render->size, bytes, size);
        render->size += size;
    } else {
        render->size = render->room - 1; /* full: the caller sees it there */
    }
}

static bool is_kept(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
}

static void put_sanitised(struct render *render, struct sink_slice name)
{
    size_t at = 0;

    while (at < name.size) {
        size_t length = utf8_length(name.bytes + at, name.size - at);
        put(render, is_kept(name.bytes[at]) ? name.bytes + at : "_", 1);
        at += length > 0 ? length : 1;
    }
}

static long count_segments(struct sink_slice topic)
{
    long count = 1;

    for (size_t i = 0; i < topic.size; i++) {
        count += topic.bytes[i] == '.' ? 1 : 0;
    }
    return count;
}

static struct sink_slice find_segment(struct sink_slice topic, long index)
{
    size_t start = 0;
    size_t end;

    for (; index > 0; index--) {
        while (topic.bytes[start] != '.') {
            start++;
        }
        start++;
    }
    for (end = start; end < topic.size && topic.bytes[end] != '.'; end++) {
    }
    return (struct sink_slice){topic.bytes + start, end - start};
}

static int put_segment(struct render *render, long number, struct error *error)
{
    long count = count_segments(render->topic);
    long index = number < 0 ? count + number : number;

    if (index < 0 || index >= count) {
        return error_set(
            error, QS_ERROR_INPUT, "topic '%.*s' has %ld segments, and path_template asks for {topic_segment[%ld]}",
            render->topic.size < SHOWN_MAX ? (int)render->topic.size : SHOWN_MAX, render->topic.bytes, count, number);
    }
    if (render->topic.size > 0) {
        put_sanitised(render, find_segment(render->topic, index));
    }
    return 0;
}

static int put_date(struct render *render, size_t from, size_t size, struct error *error)
{
    char text[CLOCK_TEXT_SIZE];

    if (render->timestamp_ms > SINK_TIMESTAMP_MAX) {
        return error_set(error, QS_ERROR_INPUT,
                         "the record's time of %" PRIu64 " ms is after year 9999, without a date",
                         render->timestamp_ms);
    }
    clock_format_wall((struct wall_ms){(int64_t)render->timestamp_ms}, text);
    put(render, text + from, size);
    return 0;
}

static void put_number(struct render *render, bool negative, uint64_t number)
{
    char text[24];
    int size = snprintf(text, sizeof text, "%s%" PRIu64, negative ? "-" : "", number);

    put(render, text, (size_t)size);
}

static bool begins_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* What stands at an opening brace; *at moves behind it. */
static int put_placeholder(struct render *render, const char **at, struct error *error)
{
    const char *text = *at;
    const char *close = strchr(text, '}');
    int code = 0;

    if (begins_with(text, segment_open)) {
        long number = 0;
        *at = read_segment_number(text + SEGMENT_OPEN_SIZE, &number);
        return put_segment(render, number, error);
    }
    *at = close != NULL ? close + 1 : text + 1;
    if (begins_with(text, "{topic}")) {
        put_sanitised(render, render->topic);
    } else if (begins_with(text, "{partition}")) {
        int64_t partition = render->partition;
        put_number(render, partition < 0, (uint64_t)(partition < 0 ? -partition : partition));
    } else if (begins_with(text, "{timestamp}")) {
        put_number(render, false, render->timestamp_ms);
    } else if (begins_with(text, "{date}")) {
        code = put_date(render, 0, 10, error);
    } else if (begins_with(text, "{hour}")) {
        code = put_date(render, 11, 2, error);
    } else {
        *at = text + 1; /* another placeholder may begin inside of what looked like one */
        put(render, text, 1);
    }
    return code;
}

int path_template_render(const char *text, struct sink_slice topic, int32_t partition, uint64_t timestamp_ms, char *out,
                         size_t size, struct error *error)
{
    struct render render = {topic, partition, timestamp_ms, out, 0, size};

    error_clear(error);
    while (*text != '\0') {
        if (*text == '{') {
            int code = put_placeholder(&render, &text, error);
            if (code != 0) {
                return code;
            }
            continue;
        }
        size_t plain = strcspn(text, "{");
        put(&render, text, plain);
        text += plain;
    }
    out[render.size] = '\0';
    if (render.size == size - 1) {
        return error_set(error, QS_ERROR_INPUT,
                         "topic '%.*s': path_template makes more than the %d bytes that an object key may have",
                         topic.size < SHOWN_MAX ? (int)topic.size : SHOWN_MAX, topic.bytes, SINK_KEY_MAX);
    }
    return 0;
}

static bool is_kept_whole(struct sink_slice name)
{
    for (size_t i = 0; i < name.size; i++) {
        if (!is_kept(name.bytes[i])) {
            return false;
        }
    }
    return true;
}

bool path_template_parts(const char *text, struct sink_slice one, struct sink_slice other)
{
    char here[SINK_KEY_MAX + 1];
    char there[SINK_KEY_MAX + 1];
    struct error error;

    if (strstr(text, "{topic}") != NULL && is_kept_whole(one) && is_kept_whole(other)) {
        return true;
    }
    return path_template_render(text, one, 0, 0, here, sizeof here, &error) != 0 ||
           path_template_render(text, other, 0, 0, there, sizeof there, &error) != 0 || strcmp(here, there) != 0;
}
