/*
 * The signals of signal_table.h, blocked for good and read from a descriptor like everything else (spec 4.2). For a
 * process that has one thread.
 */
#ifndef SUPERVISOR_SIGNALS_H
#define SUPERVISOR_SIGNALS_H

/* Holds those that stop back until signals_open(), so that a stop in the first moments is one as any other, and ignores
 * what is to be ignored. For the program's first line. */
void signals_hold(void);

/* A signalfd that doesn't block, of every signal that is not ignored and of SIGCHLD; -1 and errno where there is none. */
int signals_open(void);

#endif
