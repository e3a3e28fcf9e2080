/* How far long work has come: progress.h. */
#include "supervisor/commands/progress.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/visible.h"

#define EVERY_MS 200

static bool shown;
static struct mono_ms last;

void progress_show(const char *format, ...)
{
    static int terminal = -1;
    va_list arguments;

    if (terminal < 0) {
        terminal = isatty(STDERR_FILENO);
    }
    if (terminal == 0 || (shown && clock_mono().v - last.v < EVERY_MS)) {
        return;
    }
    last = clock_mono();
    shown = true;
    (void)fputs("\r\033[K", stderr);
    va_start(arguments, format);
    char *line = visible_format(format, arguments);
    va_end(arguments);
    (void)fputs(line, stderr);
    free(line);
    (void)fflush(stderr);
}

void progress_clear(void)
{
    if (shown) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
        shown = false;
    }
}
