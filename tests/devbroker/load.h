/*
 * Filling the log from files before the broker listens, and the live load that goes on while it runs.
 */
#ifndef DEVBROKER_LOAD_H
#define DEVBROKER_LOAD_H

#include "broker.h"

struct lines { /* a file in memory */
    char *bytes;
    size_t size;
    struct slice *lines; /* without blanks around; empty ones left out */
    size_t count;
};

/* Each prints what is wrong and returns false when the file can't be read, or isn't what it should be. */
bool lines_read(const char *file, struct lines *lines);
void lines_free(struct lines *lines);
bool load_run(struct broker *broker, const struct load *load);
bool load_log_run(struct broker *broker, const struct load *load);
/* The partition that a record belongs to, by the field of this name; in memory of name's. */
void load_partition(struct slice record, const char *field, struct text *name);

/* --rate: a thread of its own until the broker stops. */
struct live;
struct live *live_start(struct broker *broker); /* NULL, with a line, when the loaded file can't be read again */
void live_end(struct live *live);

#endif
