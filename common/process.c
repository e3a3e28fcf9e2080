/* Other processes: process.h. */
#include "common/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/small_file.h"

/* Its state's letter, or 0. The name before it is in parentheses, and may hold any byte. */
static char state_of(pid_t pid)
{
    char path[64];
    char text[256];

    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    ssize_t size = small_file_read(path, text, sizeof text - 1, NULL);
    text[size > 0 ? size : 0] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end != NULL && name_end[1] == ' ' ? name_end[2] : 0;
}

bool process_runs(pid_t pid)
{
    if (kill(pid, 0) != 0 && errno != EPERM) {
        return false;
    }
    char state = state_of(pid);
    return state != 'Z' && state != 'X';
}
