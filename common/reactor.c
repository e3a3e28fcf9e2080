/*
 * The event loop: one epoll set that holds both what the program watches and what curl wants to know of its sockets, one
 * heap of timers in which curl's next deadline is a timer like any other.
 *
 * A turn is: wait, descriptors, timers, ended transfers. Callbacks of the program run only from here and never from
 * within curl, so they may add and remove transfers, watches and timers at will. Two things make that safe:
 *
 * - Events are collected before they are handed out, and a callback may close a descriptor whose event still waits; the
 *   kernel may give its number to the next socket at once. So every watch has a serial, the kernel hands it back with
 *   the event, and an event whose serial isn't the current one is about something that is gone.
 * - Ended transfers are taken from curl one at a time; removing a handle takes its message out of curl's list, so a
 *   callback that cancels another transfer is never followed by that transfer's own callback.
 *
 * Nothing is polled: without a descriptor ready or a deadline due the loop sleeps.
 */
#include "common/reactor.h"

#include <curl/curl.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_A_TURN 128

/* Idle connections kept for reuse. Curl's own default follows the number of transfers of the moment, so that a lull
 * would close the connections that the next burst needs. */
#define CONNECTIONS_KEPT 512L

enum watcher { WATCHER_NONE, WATCHER_PROGRAM, WATCHER_CURL };

struct watch {
    enum watcher watcher;
    uint32_t serial;
    reactor_ready *ready;
    void *argument;
};

struct reactor {
    CURLM *multi;
    int epoll;
    struct mono_ms now;
    struct timers timers;
    struct timer curl_timer;
    struct watch *watches; /* by descriptor */
    size_t watch_capacity;
    uint32_t serial;
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_status;

static void curl_start(void)
{
    curl_status = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static int watches_grow(struct reactor *reactor, size_t descriptor)
{
    if (descriptor < reactor->watch_capacity) {
        return QS_OK;
    }
    size_t capacity = reactor->watch_capacity < 64 ? 64 : reactor->watch_capacity;
    while (capacity <= descriptor) {
        capacity *= 2;
    }
    struct watch *watches = realloc(reactor->watches, capacity * sizeof *watches);
    if (watches == NULL) {
        return QS_ERROR_NO_MEMORY;
    }
    for (size_t i = reactor->watch_capacity; i < capacity; i++) {
        watches[i] = (struct watch){0};
    }
    reactor->watches = watches;
    reactor->watch_capacity = capacity;
    return QS_OK;
}

static void watch_remove(struct reactor *reactor, int descriptor)
{
    if ((size_t)descriptor < reactor->watch_capacity) {
        reactor->watches[descriptor].watcher = WATCHER_NONE;
    }
    /* It may have been closed before: then the kernel has already forgotten it. */
    (void)epoll_ctl(reactor->epoll, EPOLL_CTL_DEL, descriptor, NULL);
}

static int watch_put(struct reactor *reactor, int descriptor, uint32_t events, const struct watch *wanted)
{
    int status = watches_grow(reactor, (size_t)descriptor);
    if (status != QS_OK) {
        return status;
    }
    struct watch *watch = &reactor->watches[descriptor];
    uint32_t serial = ++reactor->serial;
    struct epoll_event event = {.events = events, .data.u64 = (uint64_t)serial << 32 | (uint32_t)descriptor};
    int operation = watch->watcher == WATCHER_NONE ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    /* What is noted here and what the kernel knows part ways when a descriptor was closed and its number used again. */
    if (epoll_ctl(reactor->epoll, operation, descriptor, &event) != 0) {
        int other = errno == EEXIST ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
        if ((errno != EEXIST && errno != ENOENT) || epoll_ctl(reactor->epoll, other, descriptor, &event) != 0) {
            return QS_ERROR_SYSTEM;
        }
    }
    *watch = *wanted;
    watch->serial = serial;
    return QS_OK;
}

int reactor_watch(struct reactor *reactor, int descriptor, short events, reactor_ready *ready, void *argument)
{
    if (descriptor < 0) {
        errno = EBADF;
        return QS_ERROR_SYSTEM;
    }
    if (events == 0) {
        watch_remove(reactor, descriptor);
        return QS_OK;
    }
    uint32_t wanted = (events & POLLIN ? (uint32_t)EPOLLIN : 0) | (events & POLLOUT ? (uint32_t)EPOLLOUT : 0);
    return watch_put(reactor, descriptor, wanted,
                     &(struct watch){.watcher = WATCHER_PROGRAM, .ready = ready, .argument = argument});
}

static int curl_wants_socket(CURL *easy, curl_socket_t descriptor, int what, void *argument, void *socket_argument)
{
    struct reactor *reactor = argument;
    (void)easy;
    (void)socket_argument;
    if (what == CURL_POLL_REMOVE) {
        watch_remove(reactor, descriptor);
        return 0;
    }
    uint32_t wanted = (what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0) | (what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0);
    if (watch_put(reactor, descriptor, wanted, &(struct watch){.watcher = WATCHER_CURL}) != QS_OK) {
        /* A socket that nobody watches is a transfer that hangs. Told so, curl ends the transfers of the moment with an
         * error, and is as before once they are gone (CURLMOPT_SOCKETFUNCTION). */
        return -1;
    }
    return 0;
}

static void curl_is_due(void *argument)
{
    struct reactor *reactor = argument;
    int running;
    curl_multi_socket_action(reactor->multi, CURL_SOCKET_TIMEOUT, 0, &running);
}

static int curl_wants_time(CURLM *multi, long timeout_ms, void *argument)
{
    struct reactor *reactor = argument;
    (void)multi;
    if (timeout_ms < 0) {
        timer_cancel(&reactor->timers, &reactor->curl_timer);
        return 0;
    }
    /* Curl counts from this moment, not from the start of the turn. */
    struct mono_ms deadline = {clock_mono().v + timeout_ms};
    timer_set(&reactor->timers, &reactor->curl_timer, deadline, curl_is_due, reactor);
    return 0;
}

static bool curl_set_up(struct reactor *reactor)
{
    pthread_once(&curl_once, curl_start);
    if (curl_status != CURLE_OK) {
        return false;
    }
    reactor->multi = curl_multi_init();
    return reactor->multi != NULL &&
           curl_multi_setopt(reactor->multi, CURLMOPT_SOCKETFUNCTION, curl_wants_socket) == CURLM_OK &&
           curl_multi_setopt(reactor->multi, CURLMOPT_SOCKETDATA, reactor) == CURLM_OK &&
           curl_multi_setopt(reactor->multi, CURLMOPT_TIMERFUNCTION, curl_wants_time) == CURLM_OK &&
           curl_multi_setopt(reactor->multi, CURLMOPT_TIMERDATA, reactor) == CURLM_OK &&
           curl_multi_setopt(reactor->multi, CURLMOPT_MAXCONNECTS, CONNECTIONS_KEPT) == CURLM_OK;
}

struct reactor *reactor_create(struct error *error)
{
    struct reactor *reactor = calloc(1, sizeof *reactor);
    if (reactor == NULL) {
        error_set(error, QS_ERROR_NO_MEMORY, "out of memory for the event loop");
        return NULL;
    }
    timers_init(&reactor->timers);
    reactor->now = clock_mono();
    reactor->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (reactor->epoll < 0) {
        error_set_errno(error, "epoll_create1");
        reactor_destroy(reactor);
        return NULL;
    }
    if (!curl_set_up(reactor)) {
        error_set(error, QS_ERROR_SYSTEM, "libcurl can't be started: out of memory, or a broken TLS library");
        reactor_destroy(reactor);
        return NULL;
    }
    error_clear(error);
    return reactor;
}

void reactor_destroy(struct reactor *reactor)
{
    if (reactor == NULL) {
        return;
    }
    /* Closing its connections, curl still speaks of sockets and timers: it goes first. */
    if (reactor->multi != NULL) {
        curl_multi_cleanup(reactor->multi);
    }
    if (reactor->epoll >= 0) {
        close(reactor->epoll);
    }
    timers_free(&reactor->timers);
    free(reactor->watches);
    free(reactor);
}

struct timers *reactor_timers(struct reactor *reactor)
{
    return &reactor->timers;
}

struct mono_ms reactor_now(const struct reactor *reactor)
{
    return reactor->now;
}

void *reactor_curl(struct reactor *reactor)
{
    return reactor->multi;
}

/* Milliseconds to wait as epoll takes them: -1 is for ever. */
static int wait_limit(const struct reactor *reactor, int64_t limit_ms)
{
    struct mono_ms deadline;
    int64_t wait = limit_ms < 0 ? INT64_MAX : limit_ms;
    if (timers_next(&reactor->timers, &deadline)) {
        int64_t until = deadline.v - clock_mono().v;
        until = until < 0 ? 0 : until;
        wait = until < wait ? until : wait;
    }
    if (wait == INT64_MAX) {
        return -1;
    }
    return wait > INT_MAX ? INT_MAX : (int)wait;
}

static void curl_socket_ready(struct reactor *reactor, int descriptor, uint32_t events)
{
    int what = (events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
               (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
    int running;
    curl_multi_socket_action(reactor->multi, descriptor, what, &running);
}

static void hand_out(struct reactor *reactor, const struct epoll_event *event)
{
    int descriptor = (int)(event->data.u64 & UINT32_MAX);
    uint32_t serial = (uint32_t)(event->data.u64 >> 32);
    struct watch watch = reactor->watches[descriptor]; /* a callback can move the array */
    if (watch.serial != serial) {
        return;
    }
    if (watch.watcher == WATCHER_CURL) {
        curl_socket_ready(reactor, descriptor, event->events);
    } else if (watch.watcher == WATCHER_PROGRAM) {
        short events = (short)((event->events & EPOLLIN ? POLLIN : 0) | (event->events & EPOLLOUT ? POLLOUT : 0) |
                               (event->events & EPOLLERR ? POLLERR : 0) | (event->events & EPOLLHUP ? POLLHUP : 0));
        watch.ready(watch.argument, events);
    }
}

static void end_transfers(struct reactor *reactor)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(reactor->multi, &left)) != NULL) {
        char *transfer = NULL;
        if (message->msg != CURLMSG_DONE ||
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer) != CURLE_OK || transfer == NULL) {
            continue;
        }
        struct reactor_transfer *ended = (struct reactor_transfer *)(void *)transfer;
        int code = (int)message->data.result; /* the message goes with the handle */
        ended->done(ended, code);
    }
}

void reactor_run_once(struct reactor *reactor, int64_t limit_ms)
{
    struct epoll_event events[EVENTS_A_TURN];
    int count = epoll_wait(reactor->epoll, events, EVENTS_A_TURN, wait_limit(reactor, limit_ms));
    reactor->now = clock_mono();
    for (int i = 0; i < count; i++) { /* count is -1 where a signal ended the wait: the caller looks at its flags */
        hand_out(reactor, &events[i]);
    }
    timers_run(&reactor->timers, reactor->now);
    end_transfers(reactor);
}
