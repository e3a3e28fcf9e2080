/*
 * Runs for the encoder's tests, read from lines in the lake's envelope by a reader of its own (neither the decoder nor
 * the encoder has a hand in it), so that lines → runs → lines can be held against what went in.
 */
#ifndef TESTS_UNIT_RUNS_H
#define TESTS_UNIT_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/run.h"

struct run_set {
    struct run_source source; /* first; next() gives the runs in order */
    struct run *runs;
    size_t run_count;
    size_t next;
    size_t fail_at; /* next() fails with QS_ERROR_NO_ROOM instead of giving this run; SIZE_MAX: never */
    struct block block;
    struct extent *extents;
    char *names;
};

/* All lines whose ts lies in [from, to), in partition and offset order. The text must outlive the runs. */
void run_set_read(struct run_set *set, const char *text, size_t size, int64_t from, int64_t to);
void run_set_rewind(struct run_set *set);
void run_set_free(struct run_set *set);

/* `count` envelope lines in order, at the least `payload` bytes of payload each, partly random and partly repetitive;
 * malloc. */
char *made_up_lines(size_t count, size_t payload, unsigned seed, size_t *size);

#endif
