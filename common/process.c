/* Other processes: process.h. */
#include "common/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Its state's letter, or 0. The name before it is in parentheses, and may hold any byte. */
static char state_of(pid_t pid)
{
    char path[64];
    char text[256];

    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return 0;
    }
    ssize_t size = read(descriptor, text, sizeof text - 1);
    (void)close(descriptor);
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
