/*
 * The signals that mean something to a running pool (spec 4.2), as an operator sends them: what queen-s3(8) prints, and
 * what signals.h takes.
 */
#ifndef SUPERVISOR_SIGNAL_TABLE_H
#define SUPERVISOR_SIGNAL_TABLE_H

enum signal_meaning {
    SIGNAL_STOPS,
    SIGNAL_RELOADS,
    SIGNAL_SHOWS, /* each queue's state, in the log */
    SIGNAL_IGNORED
};

struct signal_row {
    int number;
    enum signal_meaning meaning;
    const char *name;
    const char *effect; /* sentences, as command.h has texts */
};

/* Ended by a NULL name. */
extern const struct signal_row signal_table[];

/* NULL where the table doesn't have it. */
const struct signal_row *signal_table_find(int number);

#endif
