/* How queues stand, in the log: state_lines.h. */
#include "worker/state_lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/report.h"

/* Lower is worse. */
static int rank_of(const struct state_line *line)
{
    if (line->failing || line->state == QUEUE_STOPPED)
        return 0;
    return line->state == QUEUE_RUNNING || line->state == QUEUE_DRAINED ? 2 : 1;
}

/* Whose lag nobody knows has the longest. */
static uint64_t lag_of(const struct state_line *line)
{
    return line->lag_us < 0 ? UINT64_MAX : (uint64_t)line->lag_us;
}

static int compare(const void *left, const void *right)
{
    const struct state_line *a = left;
    const struct state_line *b = right;
    if (rank_of(a) != rank_of(b))
        return rank_of(a) < rank_of(b) ? -1 : 1;
    if (lag_of(a) != lag_of(b))
        return lag_of(a) > lag_of(b) ? -1 : 1;
    return strcmp(a->queue, b->queue);
}

static void say(const struct state_line *line)
{
    char window[32] = "none";
    char lag[32] = "unknown";
    if (line->k >= 0)
        snprintf(window, sizeof window, "%" PRId64, line->k);
    if (line->lag_us >= 0)
        snprintf(lag, sizeof lag, "%.3f s", (double)line->lag_us / 1e6);
    log_asked(line->queue, "%s, window %s, %" PRIu64 " bytes buffered, lag %s", report_state_name(line->state), window,
              line->buffer_bytes, lag);
}

static void say_counts(const struct state_line *lines, size_t count, size_t shown)
{
    char text[256] = "";
    size_t size = 0;
    for (uint32_t state = QUEUE_CLAIMING; state <= QUEUE_DRAINED; state++) {
        size_t with = 0;
        for (size_t i = 0; i < count; i++)
            with += lines[i].state == state;
        if (with > 0)
            size += (size_t)snprintf(text + size, sizeof text - size, "%s%zu %s", size > 0 ? ", " : "", with,
                                     report_state_name(state));
    }
    log_asked(NULL, "%zu queues: %s; the %zu worst off:", count, text, shown);
}

void state_lines_say(struct state_line *lines, size_t count, size_t most)
{
    size_t shown = count;
    if (count > 1)
        qsort(lines, count, sizeof *lines, compare);
    if (count > most) {
        shown = most > 0 ? most - 1 : 0;
        say_counts(lines, count, shown);
    }
    for (size_t i = 0; i < shown; i++)
        say(&lines[i]);
}
