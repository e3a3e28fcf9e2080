/*
 * The text of `policy`, apart from the command so that a test can read it without a process.
 */
#ifndef SUPERVISOR_COMMANDS_POLICY_H
#define SUPERVISOR_COMMANDS_POLICY_H

#include "common/settings.h"

/* One JSON document with a line feed at its end; malloc, NULL if out of memory. Not for a file: endpoint. */
char *policy_text(const struct settings *settings);

#endif
