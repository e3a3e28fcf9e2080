/*
 * A pool's state as `status` prints it.
 */
#ifndef SUPERVISOR_COMMANDS_STATUS_TEXT_H
#define SUPERVISOR_COMMANDS_STATUS_TEXT_H

#include "supervisor/snapshot.h"

/* To standard output (output.h). The snapshot is to be sorted. */
void status_print(const struct snapshot *snapshot, bool colour);

#endif
