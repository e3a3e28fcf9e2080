/*
 * See small_file.h. A regular file is always ready, so only what may never end is waited for.
 */
#include "common/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"

/* Until there is something to read, or the end of it; false with errno. */
static bool wait_for_more(int descriptor, struct mono_ms deadline)
{
    struct pollfd watched = {.fd = descriptor, .events = POLLIN};

    for (;;) {
        int64_t left = deadline.v - clock_mono().v;
        int ready = poll(&watched, 1, left > 0 ? (int)left : 0);

        if (ready > 0) {
            return true;
        }
        if (ready == 0 || errno != EINTR) {
            errno = ready == 0 ? ETIME : errno;
            return false;
        }
    }
}

static ssize_t read_whole(int descriptor, char *bytes, size_t size, struct mono_ms deadline)
{
    size_t filled = 0;
    ssize_t got = 1;

    while (got != 0 && filled < size) {
        if (!wait_for_more(descriptor, deadline)) {
            return -1;
        }
        got = read(descriptor, bytes + filled, size - filled);
        if (got < 0 && errno != EINTR && errno != EAGAIN) {
            return -1;
        }
        filled += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)filled;
}

static void say_why(int number, struct error *error)
{
    char reason[128];

    if (number == ETIME) {
        (void)error_set(error, QS_ERROR_SYSTEM, "a pipe without an end within %d s", SMALL_FILE_WAIT_MS / 1000);
    } else {
        (void)error_set(error, QS_ERROR_SYSTEM, "%s", strerror_r(number, reason, sizeof reason));
    }
}

ssize_t small_file_read(const char *path, char *bytes, size_t size, struct error *error)
{
    struct mono_ms deadline = {clock_mono().v + SMALL_FILE_WAIT_MS};
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    ssize_t filled = descriptor < 0 ? -1 : read_whole(descriptor, bytes, size, deadline);

    if (filled < 0) {
        say_why(errno, error);
    }
    if (descriptor >= 0) {
        (void)close(descriptor);
    }
    return filled;
}
