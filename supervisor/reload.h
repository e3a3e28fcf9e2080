/*
 * New settings for a pool that runs (spec 4.2): what can't change without a real restart stays as it is, and is logged.
 */
#ifndef SUPERVISOR_RELOAD_H
#define SUPERVISOR_RELOAD_H

#include <stddef.h>

#include "common/settings.h"

/* Reads the settings as at the start: 0, or QS_ERROR_INPUT with the line that names the variable. */
typedef int reload_read(void *argument, struct settings *fresh, struct error *error);

/* Puts what `read` gives in the place of *settings, whose strings are freed: no one may have kept one. What has to stay
 * keeps its value: QUEEN_S3_SINK, QUEUES, WORKERS, LISTEN, CONTROL and CONNECTORS. workers: how many there may be, for the memory
 * that they need. 0, or QS_ERROR_INPUT and nothing has changed. */
int reload_settings(struct settings *settings, size_t workers, reload_read *read, void *argument, struct error *error);

#endif
