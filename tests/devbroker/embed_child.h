/*
 * The embedded sink's process: what it is given at its start.
 */
#ifndef DEVBROKER_EMBED_CHILD_H
#define DEVBROKER_EMBED_CHILD_H

#include "system.h"

#include <sys/types.h>

/* The broker's environment less its four secrets, with this QUEEN_URL. For embed_environment_free(), which takes
 * NULL. */
char **embed_environment(const char *queen_url);
void embed_environment_free(char **environment);

/* Starts the program with no argument, in a process group of its own, bound to the life of the calling thread, which
 * must be the main one. *output becomes the reading end, never blocking, of its standard output and error. The pid, or
 * -1 with errno set. A program that can't be executed shows as exit 126, as from a shell. */
pid_t embed_child_start(const char *program, char **environment, int *output);

#endif
