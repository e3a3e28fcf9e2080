/*
 * Running connectors, for the two commands that do: alone, and beside queues.
 */
#ifndef SUPERVISOR_COMMANDS_CONNECTORS_RUN_H
#define SUPERVISOR_COMMANDS_CONNECTORS_RUN_H

#include <stddef.h>

#include "common/settings.h"
#include "supervisor/loop.h"

/* Reads the definitions of files and folders and runs them, with the settings' queues if there are any. The exit code;
 * what failed has been said on stderr. */
int connectors_run(struct settings *settings, const char *const *paths, size_t path_count,
                   const struct supervisor_hooks *hooks);

#endif
