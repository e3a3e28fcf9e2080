/*
 * A small file, read at once: settings and secrets. A running supervisor reads them again at a SIGHUP, and must not stand
 * still for what the path leads to: a named pipe that nobody writes to would hold it, its answers and its signals for
 * good. So nothing is waited for longer than SMALL_FILE_WAIT_MS. A pipe that is written to is a file like any other.
 */
#ifndef COMMON_SMALL_FILE_H
#define COMMON_SMALL_FILE_H

#include <sys/types.h>

#include "common/error.h"

#define SMALL_FILE_WAIT_MS 5000 /* for the whole of it; the command behind a shell's <(…) has it to answer */

/* The bytes read, at most size of them; what is beyond isn't read. -1: *error says why, without the
 * path, and its code is QS_ERROR_SYSTEM. */
ssize_t small_file_read(const char *path, char *bytes, size_t size, struct error *error);

#endif
