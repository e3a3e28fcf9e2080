/*
 * What the files of the check share: check.c goes through manifests and the log, check_lines.c through an object.
 *
 * Nothing here uses the code under test: names, keys and lines are spelled anew from the specification.
 */
#ifndef TESTS_SIM_CHECK_H
#define TESTS_SIM_CHECK_H

#include <cjson/cJSON.h>

#include "tests/sim/simulation.h"

struct checked_window {
    size_t queue;
    int64_t k;
    int64_t start;
    int64_t end;
    const char *compression;
    uint64_t records; /* found in its objects */
    uint64_t partitions;
    int64_t min_ts;
    int64_t max_ts;
};

/* The bytes of an object, decompressed; malloc, NULL where it can't be. */
char *check_decompress(const struct bucket_object *object, const char *compression, size_t *size);
/* Whether an object has all lines of another, in order, and more. */
bool check_has_grown(const struct bucket_object *from, const struct bucket_object *to);
/* Every line of an object: its form, its place, its record. False after the first that is wrong. */
bool check_lines(struct simulation *simulation, struct checked_window *window, const char *text, size_t size);
struct log_partition *check_partition(struct simulation *simulation, size_t queue, const char *name, size_t size);
struct log_record *check_record(struct log_partition *partition, size_t life, int64_t offset);

#endif
