/*
 * The control socket as a thing in the file system: its lock, its making and its end. control.h says what is promised.
 */
#ifndef SUPERVISOR_CONTROL_SOCKET_H
#define SUPERVISOR_CONTROL_SOCKET_H

#include <stdbool.h>

#include "common/error.h"

struct control_socket {
    char *path;
    char *lock_path;
    int lock;       /* held for as long as the socket is there */
    int descriptor; /* listening, non-blocking */
};

/* 0: *out is there. 1: another pool has the lock. QS_ERROR_INPUT: a path that no socket can have, or something else is
 * there. QS_ERROR_SYSTEM: the system says no. The message goes behind "<path>: ". */
int control_socket_make(const char *path, int backlog, struct control_socket *out, struct error *error);
void control_socket_remove(struct control_socket *made);

#endif
