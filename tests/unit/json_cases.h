/*
 * JSON for tests: a reader to compare with, texts that must be accepted and refused, and a source of random ones.
 */
#ifndef TESTS_UNIT_JSON_CASES_H
#define TESTS_UNIT_JSON_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The byte after the value that begins at `at`, or NULL; *breaks as json_value.line_breaks. */
const char *reference_value(const char *at, const char *end, bool *breaks);

/* Up to a NULL. */
extern const char *const json_accepted[];
extern const char *const json_refused[];

struct random {
    uint64_t state;
};

uint64_t random_next(struct random *random);
/* 0 … limit - 1; limit > 0. */
size_t random_below(struct random *random, size_t limit);

/* A value, most often a container, of at most `room` bytes. */
size_t generate_json(struct random *random, char *out, size_t room);
/* A string with both its quotes; room >= 64. */
size_t generate_string(struct random *random, char *out, size_t room);
/* Changes, removes or adds a byte; returns the new size, at most one more. */
size_t damage(struct random *random, char *text, size_t size);

/* Plain files of a tar archive in memory, one after the other; zero it before the first. */
struct tar_file {
    const char *name;
    const char *bytes;
    size_t size;
    size_t next;
};
bool next_tar_file(const char *archive, size_t size, struct tar_file *file);

#endif
