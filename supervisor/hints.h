/*
 * What an operator may want to know of settings that are accepted, or why others were not (spec 3.1): `run` logs it, and
 * `check` prints it. No broker and no bucket is asked.
 */
#ifndef SUPERVISOR_HINTS_H
#define SUPERVISOR_HINTS_H

#include "common/settings.h"

/* One line a hint, without a line feed. settings: NULL where they weren't accepted; then it is the names in the
 * environment that nobody knows, one of which may be what is missed. */
typedef void hints_line(const char *line);
void hints_tell(const struct settings *settings, hints_line *tell);

#endif
