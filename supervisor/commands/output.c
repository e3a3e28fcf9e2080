/* Standard output of a command: output.h. */
#include "supervisor/commands/output.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/visible.h"
#include "supervisor/command.h"

#define BUFFER_BYTES 65536

static int broken; /* errno of the first write that failed */

void output_begin(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)setvbuf(stdout, NULL, _IOFBF, BUFFER_BYTES);
}

static void note(bool written)
{
    if (!written && broken == 0) {
        broken = errno != 0 ? errno : EIO;
    }
}

void output_write(const void *bytes, size_t size)
{
    if (broken == 0) {
        note(fwrite(bytes, 1, size, stdout) == size);
    }
}

void output_text(const char *text)
{
    output_write(text, strlen(text));
}

void output_format(const char *format, ...)
{
    va_list arguments;

    if (broken != 0) {
        return;
    }
    va_start(arguments, format);
    note(vfprintf(stdout, format, arguments) >= 0);
    va_end(arguments);
}

void output_line(const char *format, ...)
{
    va_list arguments;

    if (broken != 0) {
        return;
    }
    va_start(arguments, format);
    char *line = visible_format(format, arguments);
    va_end(arguments);
    output_text(line);
    output_text("\n");
    free(line);
}

bool output_closed(void)
{
    return broken != 0;
}

int output_end(int code)
{
    if (broken == 0) {
        note(fflush(stdout) == 0);
    }
    if (broken == 0 || broken == EPIPE) {
        return code;
    }
    return command_fail(COMMAND_FAULT, "standard output: %s", strerror(broken));
}

int command_fail(int code, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    char *line = visible_format(format, arguments);
    va_end(arguments);
    (void)fflush(stdout); /* so that a terminal shows both in order */
    (void)fprintf(stderr, "queen-s3: %s\n", line);
    free(line);
    return code;
}
