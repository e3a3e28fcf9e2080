/*
 * The signals that mean something to a running pool (spec 4.2), as an operator sends them: what queen-s3(8) prints.
 */
#ifndef SUPERVISOR_SIGNAL_TABLE_H
#define SUPERVISOR_SIGNAL_TABLE_H

struct signal_row {
    int number;
    const char *name;
    const char *effect; /* sentences, as command.h has texts */
};

/* Ended by a NULL name. */
extern const struct signal_row signal_table[];

#endif
