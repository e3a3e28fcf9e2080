/*
 * How a worker's queues stand, in the log, for who asked with SIGUSR1 (spec 4.2): one line a queue, those first that
 * somebody has to look at. Where that would be more lines than the log has room for, a line comes before them that counts
 * the queues by their state, and as many queues follow as there is room for.
 */
#ifndef WORKER_STATE_LINES_H
#define WORKER_STATE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state_line {
    const char *queue;
    uint32_t state; /* enum report_queue_state */
    bool failing;   /* something stands in its way */
    int64_t k;      /* last committed, -1: not known */
    uint64_t buffer_bytes;
    int64_t lag_us; /* -1: not known */
};

/* Sorts them, and says at most `most` lines. */
void state_lines_say(struct state_line *lines, size_t count, size_t most);

#endif
