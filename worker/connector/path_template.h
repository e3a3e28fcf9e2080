/*
 * The directory part of an object key (seed, "Object keys"; spec 5.2).
 *
 *     {topic}             the topic's name, sanitised
 *     {topic_segment[n]}  segment n of the topic split on `.`, from the end where n is negative, sanitised
 *     {partition}         unpadded
 *     {date} {hour}       YYYY-MM-DD and HH, UTC, of the first record in the file
 *     {timestamp}         its milliseconds since 1970
 *
 * Sanitised: ASCII letters, digits, `.`, `_` and `-` stay, every other character (not byte) becomes one `_`. All else in
 * a template stays as it is, a placeholder of another name and `//` too.
 */
#ifndef WORKER_CONNECTOR_PATH_TEMPLATE_H
#define WORKER_CONNECTOR_PATH_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/connector/record.h"

/* S3's limit on a key, in bytes of UTF-8. */
#define SINK_KEY_MAX 1024

/* 0, or QS_ERROR_INPUT where a segment's number isn't one or its bracket is never closed. */
int path_template_check(const char *text, struct error *error);
/* Whether a date is asked for: only then must the first record's time have one. */
bool path_template_has_date(const char *text);

/* Whether files of two topics never get one directory for the same partition at the same time. Where they do, they get
 * the same keys as soon as they cover the same offsets, and one replaces the other. A topic that the template gives no
 * directory has none in common. */
bool path_template_parts(const char *text, struct sink_slice one, struct sink_slice other);

/* Writes what a checked template gives and a NUL. QS_ERROR_INPUT where the topic has too few segments, the time is after
 * year 9999 and a date is asked for, or `size` bytes don't hold it. The topic must be UTF-8. */
int path_template_render(const char *text, struct sink_slice topic, int32_t partition, uint64_t timestamp_ms, char *out,
                         size_t size, struct error *error);

#endif
