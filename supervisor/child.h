/*
 * How a process of the pool begins (spec 4.1, 4.2): forked from the supervisor's one thread, bound to its life, in a
 * process group of its own if it is a worker, with no descriptor, signal or variable that isn't its own.
 */
#ifndef SUPERVISOR_CHILD_H
#define SUPERVISOR_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/error.h"

struct child_options {
    bool own_group;    /* a worker; the probe stays in the supervisor's group */
    int keep;          /* the one descriptor above 2 that stays open */
    int output;        /* becomes standard output and standard error; -1: they stay the parent's */
    const char *title; /* what ps shows */
};

/* Runs in the child; what it returns is the exit code. It begins with SIGTERM blocked, SIGINT, SIGHUP, SIGUSR1 and
 * SIGPIPE ignored and all other signals unblocked and at their defaults. */
typedef int child_main(void *argument);

/* The child's pid in the parent, or a negative enum qs_error. Blocks the signals in question around the fork. */
pid_t child_fork(const struct child_options *options, child_main *run, void *argument, struct error *error);

/* Asks for SIGKILL when the process `parent` ends; false where it has ended already (this process then belongs to init
 * or to a sub-reaper, so it is the number that tells). child_fork() does this. */
bool child_follow(pid_t parent);

/* A signal to every process of the group that the child leads. */
void child_signal_group(pid_t child, int number);

#endif
