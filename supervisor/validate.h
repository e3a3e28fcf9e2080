/*
 * Whether a pool can be run with these settings: what `run` and `check` ask at the start, and a rolling restart asks of
 * the file that it has read afresh (spec 4.2, 4.4). No broker and no bucket is asked.
 */
#ifndef SUPERVISOR_VALIDATE_H
#define SUPERVISOR_VALIDATE_H

#include "common/error.h"
#include "common/settings.h"

/* settings: as settings_load() gives them, each good by itself and beside the others. 0, or QS_ERROR_INPUT with the line
 * that names the variable. */
int validate_settings(const struct settings *settings, struct error *error);

/* What an operator may want to know of them beside: one line each, without a line feed. settings: NULL where they weren't
 * accepted; then it is the names in the environment that nobody knows, one of which may be what is missed. */
typedef void validate_tell(const char *line);
void validate_hints(const struct settings *settings, validate_tell *tell);

#endif
