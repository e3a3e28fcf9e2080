/* The control socket as a thing in the file system: control_socket.h. */
#include "supervisor/control_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/memory.h"
#include "supervisor/control.h"

#define LOCK_MODE    0600
#define SOCKET_UMASK 0177
#define LOCK_TAKEN   1 /* by another pool */

/* The name still leads to the file that is locked: the pool that had it before removes it when it ends. */
static bool is_current(int lock, const char *path)
{
    struct stat held;
    struct stat named;

    return fstat(lock, &held) == 0 && lstat(path, &named) == 0 && held.st_dev == named.st_dev &&
           held.st_ino == named.st_ino;
}

/* 0 and the lock's descriptor, LOCK_TAKEN, or QS_ERROR_SYSTEM. */
static int take_lock(const char *path, int *out, struct error *error)
{
    for (;;) {
        int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, LOCK_MODE);
        int failure;

        if (lock < 0) {
            return error_set_errno(error, "its lock can't be made");
        }
        if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
            if (is_current(lock, path)) {
                *out = lock;
                return 0;
            }
            (void)close(lock);
            continue;
        }
        failure = errno;
        (void)close(lock);
        if (failure == EWOULDBLOCK) {
            return LOCK_TAKEN;
        }
        errno = failure;
        return error_set_errno(error, "can't be locked");
    }
}

/* A socket that is left of a pool that was killed may go; a file of somebody's may not. */
static int check_free(const char *path, struct error *error)
{
    struct stat there;

    if (lstat(path, &there) == 0 && !S_ISSOCK(there.st_mode)) {
        return error_set(error, QS_ERROR_INPUT, "something that is no socket is there");
    }
    return 0;
}

static int bind_new(const char *path, int backlog, int *out, struct error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    mode_t before;
    bool bound;

    if (made < 0) {
        return error_set_errno(error, "socket");
    }
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s%s", path, CONTROL_NEW_SUFFIX);
    (void)unlink(address.sun_path);
    before = umask(SOCKET_UMASK);
    bound = bind(made, (const struct sockaddr *)&address, sizeof address) == 0;
    (void)umask(before);
    if (bound && listen(made, backlog) == 0 && rename(address.sun_path, path) == 0) {
        *out = made;
        return 0;
    }
    (void)error_set_errno(error, "can't be made");
    if (bound) {
        (void)unlink(address.sun_path);
    }
    (void)close(made);
    return QS_ERROR_SYSTEM;
}

int control_socket_make(const char *path, int backlog, struct control_socket *out, struct error *error)
{
    int code = control_path_check(path, error);

    *out = (struct control_socket){.lock = -1, .descriptor = -1};
    if (code != 0) {
        return code;
    }
    out->path = memory_copy_text(path);
    out->lock_path = memory_format("%s%s", path, CONTROL_LOCK_SUFFIX);
    code = take_lock(out->lock_path, &out->lock, error);
    if (code == 0) {
        code = check_free(path, error);
    }
    if (code == 0) {
        code = bind_new(path, backlog, &out->descriptor, error);
    }
    if (code != 0) {
        control_socket_remove(out);
    }
    return code;
}

/* The lock goes last: until then no other pool makes a socket of this name. */
void control_socket_remove(struct control_socket *made)
{
    if (made->descriptor >= 0) {
        (void)unlink(made->path);
        (void)close(made->descriptor);
    }
    if (made->lock >= 0) {
        (void)unlink(made->lock_path);
        (void)close(made->lock);
    }
    free(made->path);
    free(made->lock_path);
    *made = (struct control_socket){.lock = -1, .descriptor = -1};
}
