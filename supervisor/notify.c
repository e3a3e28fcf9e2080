/*
 * See notify.h.
 */
#include "supervisor/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"

#define TRY_AGAIN_MS 100

/* A path, or `@` for a name in the abstract namespace, which has a NUL in that place and none at its end. */
static bool read_address(struct notify *notify, const char *text)
{
    size_t size = strlen(text);

    if ((text[0] != '/' && text[0] != '@') || size < 2 || size >= sizeof notify->address.sun_path) {
        return false;
    }
    notify->address.sun_family = AF_UNIX;
    memcpy(notify->address.sun_path, text, size);
    notify->address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    if (text[0] == '@') {
        notify->address.sun_path[0] = '\0';
    } else {
        notify->address_size++;
    }
    return true;
}

/* A whole number, and nothing else, of at least 1. */
static bool read_number(const char *name, int64_t *number)
{
    const char *text = getenv(name);
    char *end = NULL;

    if (text == NULL || text[0] < '0' || text[0] > '9') {
        return false;
    }
    errno = 0;
    *number = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0' && *number > 0;
}

static void read_watchdog(struct notify *notify)
{
    int64_t microseconds = 0;
    int64_t pid = 0;

    if (!read_number("WATCHDOG_USEC", &microseconds)) {
        return;
    }
    if (getenv("WATCHDOG_PID") != NULL && (!read_number("WATCHDOG_PID", &pid) || pid != getpid())) {
        return;
    }
    notify->beat_ms = microseconds / 2000 > 0 ? microseconds / 2000 : 1;
}

void notify_open(struct notify *notify)
{
    const char *address = getenv("NOTIFY_SOCKET");

    *notify = (struct notify){.descriptor = -1};
    if (address == NULL || address[0] == '\0') {
        return;
    }
    if (!read_address(notify, address)) {
        log_line(LOG_WARN, NULL, "NOTIFY_SOCKET=%s: neither a path nor @name, nobody is notified", address);
        return;
    }
    notify->descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (notify->descriptor < 0) {
        log_line(LOG_WARN, NULL, "NOTIFY_SOCKET=%s: %s, nobody is notified", address, strerror(errno));
        return;
    }
    read_watchdog(notify);
}

void notify_close(struct notify *notify)
{
    if (notify->descriptor >= 0) {
        (void)close(notify->descriptor);
    }
    notify->descriptor = -1;
}

/* False where the manager's queue is full: any other failure isn't healed by another try. */
static bool send_text(const struct notify *notify, const char *text)
{
    ssize_t sent = sendto(notify->descriptor, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
                          (const struct sockaddr *)&notify->address, notify->address_size);

    return sent >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && errno != ENOBUFS);
}

static void try_state(struct notify *notify, struct mono_ms now)
{
    if (send_text(notify, notify->unsent)) {
        notify->unsent[0] = '\0';
    } else {
        notify->next_try.v = now.v + TRY_AGAIN_MS;
    }
}

void notify_state(struct notify *notify, struct mono_ms now, const char *format, ...)
{
    va_list arguments;

    if (notify->descriptor < 0) {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(notify->unsent, sizeof notify->unsent, format, arguments);
    va_end(arguments);
    try_state(notify, now);
}

void notify_reloading(struct notify *notify, struct mono_ms now)
{
    struct timespec time = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    notify_state(notify, now, "RELOADING=1\nMONOTONIC_USEC=%lld",
                 (long long)time.tv_sec * 1000000 + time.tv_nsec / 1000);
}

void notify_status(struct notify *notify, const char *text)
{
    (void)snprintf(notify->status, sizeof notify->status, "%s", text);
}

static bool has_news(const struct notify *notify)
{
    return strcmp(notify->status, notify->told) != 0;
}

static void send_status(struct notify *notify, struct mono_ms now)
{
    char text[sizeof "STATUS=" + NOTIFY_TEXT_SIZE];

    (void)snprintf(text, sizeof text, "STATUS=%s", notify->status);
    notify->next_status.v = now.v + NOTIFY_STATUS_EVERY_MS;
    if (send_text(notify, text)) {
        memcpy(notify->told, notify->status, sizeof notify->told);
    }
}

void notify_tick(struct notify *notify, struct mono_ms now)
{
    if (notify->descriptor < 0) {
        return;
    }
    if (notify->unsent[0] != '\0' && notify->next_try.v <= now.v) {
        try_state(notify, now);
    }
    if (notify->beat_ms > 0 && notify->next_beat.v <= now.v) {
        notify->next_beat.v = now.v + notify->beat_ms;
        (void)send_text(notify, "WATCHDOG=1");
    }
    if (has_news(notify) && notify->next_status.v <= now.v) {
        send_status(notify, now);
    }
}

bool notify_deadline(const struct notify *notify, struct mono_ms *deadline)
{
    bool any = false;

    if (notify->descriptor < 0) {
        return false;
    }
    if (notify->unsent[0] != '\0') {
        clock_sooner(deadline, &any, notify->next_try);
    }
    if (notify->beat_ms > 0) {
        clock_sooner(deadline, &any, notify->next_beat);
    }
    if (has_news(notify)) {
        clock_sooner(deadline, &any, notify->next_status);
    }
    return any;
}
