/*
 * What a service manager is told: the datagrams of sd_notify(3), to the socket that NOTIFY_SOCKET names, and the
 * watchdog of sd_watchdog_enabled(3). Without NOTIFY_SOCKET nothing is sent. Nothing here waits: what says how the
 * service stands is tried again until it has gone out; a watchdog's beat or a status that isn't taken is not.
 */
#ifndef SUPERVISOR_NOTIFY_H
#define SUPERVISOR_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/clock.h"

#define NOTIFY_STATUS_EVERY_MS 1000 /* at most */
#define NOTIFY_TEXT_SIZE       256

struct notify {
    int descriptor; /* -1: there is nobody */
    struct sockaddr_un address;
    socklen_t address_size;
    int64_t beat_ms; /* half of WATCHDOG_USEC; 0: no watchdog, or another process's */
    struct mono_ms next_beat;
    char unsent[NOTIFY_TEXT_SIZE]; /* the newest state, where it hasn't gone out */
    struct mono_ms next_try;
    char status[NOTIFY_TEXT_SIZE];
    char told[NOTIFY_TEXT_SIZE]; /* the status that has gone out */
    struct mono_ms next_status;
};

/* From the environment; an address that can't be one is logged. */
void notify_open(struct notify *notify);
void notify_close(struct notify *notify);

/* The unit's state: assignments, a line each, of at most NOTIFY_TEXT_SIZE - 1 bytes: `READY=1`. */
void notify_state(struct notify *notify, struct mono_ms now, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* RELOADING=1, with the time that tells the manager which reload is meant. */
void notify_reloading(struct notify *notify, struct mono_ms now);
/* One line for people: goes out with the next notify_tick() where it says something new. */
void notify_status(struct notify *notify, const char *text);

/* Sends what is due: from the loop itself, so that one that hangs is noticed. */
void notify_tick(struct notify *notify, struct mono_ms now);
/* When it is to be called again; false: not for now. */
bool notify_deadline(const struct notify *notify, struct mono_ms *deadline);

#endif
