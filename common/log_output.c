/*
 * See log_output.h. A pipe and a terminal are opened once more through /proc, which gives the same pipe under a new
 * description, and that one doesn't block. A socket can't be opened, but send() has a flag for it. A file takes what it
 * gets.
 */
#include "common/log_output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int own = -1;     /* the second description */
static atomic_bool torn; /* the last line stands there without its end */
static atomic_bool gone; /* nobody reads */

void log_output_open(void)
{
    struct stat status;

    if (own >= 0 || fstat(STDERR_FILENO, &status) != 0 || (!S_ISFIFO(status.st_mode) && !isatty(STDERR_FILENO))) {
        return;
    }
    own = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void log_output_reset(void)
{
    own = -1;
    atomic_store(&torn, false);
    atomic_store(&gone, false);
}

/* A pipe that polls writable takes PIPE_BUF bytes without blocking (pipe(7)), unless another writer is quicker. */
static ssize_t write_shared(const char *bytes, size_t size)
{
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
    ssize_t written = send(STDERR_FILENO, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (written >= 0 || errno != ENOTSOCK) {
        return written;
    }
    if (poll(&room, 1, 0) != 1) {
        errno = EAGAIN;
        return -1;
    }
    return write(STDERR_FILENO, bytes, size);
}

static bool write_whole(const char *bytes, size_t size)
{
    ssize_t written = own >= 0 ? write(own, bytes, size) : write_shared(bytes, size);

    if (written < 0 && errno == EPIPE) {
        atomic_store(&gone, true);
    }
    if (written > 0) {
        atomic_store(&gone, false);
        atomic_store(&torn, bytes[written - 1] != '\n');
    }
    return written == (ssize_t)size;
}

bool log_output_write(const char *bytes, size_t size)
{
    if (atomic_load(&torn) && !write_whole("\n", 1)) {
        return false;
    }
    for (size_t done = 0; done < size; done += PIPE_BUF) {
        if (!write_whole(bytes + done, size - done < PIPE_BUF ? size - done : PIPE_BUF)) {
            return false;
        }
    }
    return true;
}

int log_output_descriptor(void)
{
    if (atomic_load(&gone)) {
        return -1;
    }
    return own >= 0 ? own : STDERR_FILENO;
}
