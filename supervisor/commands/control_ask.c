/* A question to a running pool: control_ask.h. */
#include "supervisor/commands/control_ask.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"

#define PIECE_BYTES  65536
#define ANSWER_BYTES ((size_t)256 << 20) /* a million queues take less */

struct call {
    const char *path;
    int descriptor;
    struct mono_ms deadline;
};

static int fail_connect(const char *path, struct error *error)
{
    if (errno == ENOENT || errno == ENOTDIR || errno == ECONNREFUSED) {
        return error_set(error, QS_ERROR_NOT_FOUND, "%s: nobody answers", path);
    }
    if (errno == EACCES || errno == EPERM) {
        return error_set(error, QS_ERROR_FORBIDDEN, "%s: only the user that runs the pool, and root, may ask it", path);
    }
    if (errno == EAGAIN) {
        return error_set(error, QS_ERROR_TRANSPORT, "%s: too many are asking already", path);
    }
    return error_set_errno(error, "%s", path);
}

static int open_call(struct call *call, struct error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (control_path_check(call->path, error) != 0) {
        error_prefix(error, "%s", call->path);
        return QS_ERROR_INPUT;
    }
    memcpy(address.sun_path, call->path, strlen(call->path));
    call->descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (call->descriptor < 0) {
        return error_set_errno(error, "%s: socket", call->path);
    }
    if (connect(call->descriptor, (const struct sockaddr *)&address, sizeof address) == 0) {
        return 0;
    }
    int code = fail_connect(call->path, error);
    (void)close(call->descriptor);
    return code;
}

/* Until there is something to read. */
static int await(const struct call *call, struct error *error)
{
    for (;;) {
        struct pollfd watched = {.fd = call->descriptor, .events = POLLIN};
        int64_t left = call->deadline.v - clock_mono().v;
        int ready = left > 0 ? poll(&watched, 1, (int)left) : 0;

        if (ready > 0) {
            return 0;
        }
        if (ready == 0) {
            return error_set(error, QS_ERROR_TRANSPORT, "%s: the pool doesn't answer in time", call->path);
        }
        if (errno != EINTR) {
            return error_set_errno(error, "%s", call->path);
        }
    }
}

static int read_answer(const struct call *call, struct byte_buffer *answer, struct error *error)
{
    char piece[PIECE_BYTES];

    for (;;) {
        int code = await(call, error);
        ssize_t got = code == 0 ? recv(call->descriptor, piece, sizeof piece, 0) : 0;

        if (code != 0) {
            return code;
        }
        if (got < 0 && errno != EAGAIN && errno != EINTR) {
            return error_set_errno(error, "%s", call->path);
        }
        if (got > 0) {
            byte_buffer_add(answer, piece, (size_t)got);
        }
        if (answer->size > ANSWER_BYTES) {
            return error_set(error, QS_ERROR_BODY, "%s: the answer has no end", call->path);
        }
        if (got == 0) {
            break;
        }
    }
    if (answer->size > 0 && answer->bytes[answer->size - 1] == '\n') {
        return 0;
    }
    return error_set(error, QS_ERROR_TRANSPORT, "%s: the pool hung up before its answer was whole", call->path);
}

int control_ask(const char *path, const char *request, int timeout_ms, struct byte_buffer *answer, struct error *error)
{
    struct call call = {.path = path, .descriptor = -1, .deadline = {clock_mono().v + timeout_ms}};
    char line[64];
    int size = snprintf(line, sizeof line, "%s\n", request);
    int code = open_call(&call, error);

    if (code != 0) {
        return code;
    }
    /* A few bytes into an empty buffer: all of them go. */
    if (send(call.descriptor, line, (size_t)size, MSG_NOSIGNAL) != size) {
        code = error_set_errno(error, "%s", path);
    } else {
        code = read_answer(&call, answer, error);
    }
    (void)close(call.descriptor);
    return code;
}

int control_ask_places(const struct control_places *places, const char *request, int timeout_ms,
                       struct byte_buffer *answer, struct error *error)
{
    int result = QS_ERROR_NOT_FOUND;

    (void)error_set(error, QS_ERROR_NOT_FOUND, "nobody answers");
    for (size_t i = 0; i < places->count; i++) {
        struct error other;
        int code = control_ask(places->paths[i], request, timeout_ms, answer, &other);

        if (code != QS_ERROR_NOT_FOUND && (code != QS_ERROR_FORBIDDEN || result == QS_ERROR_NOT_FOUND)) {
            *error = other;
            result = code;
        }
        if (code != QS_ERROR_NOT_FOUND && code != QS_ERROR_FORBIDDEN) {
            break;
        }
    }
    return result;
}
