/*
 * See report_link.h.
 */
#include "worker/report_link.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define FINISH_TURNS   100
#define FINISH_TURN_MS 10

static void ready(void *argument, short events)
{
    struct report_link *link = argument;
    struct report_header header;
    const void *body;

    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) {
        if (report_fill(&link->incoming, link->descriptor) < 0) {
            link->gone = true;
            return;
        }
        while (report_next(&link->incoming, &header, &body) == 1) {
            if (link->events->take != NULL) {
                link->events->take(link->argument, &header, body);
            }
        }
    }
    report_link_flush(link);
}

void report_link_flush(struct report_link *link)
{
    int status = report_flush(&link->outgoing, link->descriptor);

    link->gone = link->gone || status < 0;
    if (!link->gone) {
        (void)reactor_watch(link->reactor, link->descriptor, (short)(POLLIN | (status == 0 ? POLLOUT : 0)), ready,
                            link);
    }
}

static void signal_came(void *argument, short events)
{
    struct report_link *link = argument;
    struct signalfd_siginfo signal;

    (void)events;
    while (read(link->signals, &signal, sizeof signal) == (ssize_t)sizeof signal) {
        link->events->stop(link->argument);
    }
}

int report_link_open(struct report_link *link, struct reactor *reactor, int descriptor,
                     const struct report_link_events *events, void *argument, struct error *error)
{
    sigset_t stop;

    *link = (struct report_link){
        .reactor = reactor, .events = events, .argument = argument, .descriptor = descriptor, .signals = -1};
    (void)sigemptyset(&stop);
    (void)sigaddset(&stop, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &stop, NULL);
    link->signals = signalfd(-1, &stop, SFD_NONBLOCK | SFD_CLOEXEC);
    if (link->signals < 0 || reactor_watch(reactor, link->signals, POLLIN, signal_came, link) != 0) {
        return error_set_errno(error, "signalfd");
    }
    if (reactor_watch(reactor, descriptor, POLLIN, ready, link) != 0) {
        return error_set_errno(error, "the socket to the supervisor");
    }
    return 0;
}

void report_link_close(struct report_link *link)
{
    if (link->reactor == NULL) {
        return;
    }
    (void)reactor_watch(link->reactor, link->descriptor, 0, NULL, NULL);
    if (link->signals >= 0) {
        (void)reactor_watch(link->reactor, link->signals, 0, NULL, NULL);
        (void)close(link->signals);
    }
    report_buffer_free(&link->outgoing);
    report_buffer_free(&link->incoming);
}

bool report_link_is_read(const struct report_link *link)
{
    return link->outgoing.end == link->outgoing.start;
}

int report_link_add(struct report_link *link, enum report_kind kind, const void *body, size_t size)
{
    return report_append(&link->outgoing, kind, body, size, NULL, 0);
}

void report_link_finish(struct report_link *link)
{
    for (int turn = 0; turn < FINISH_TURNS && !link->gone && !report_link_is_read(link); turn++) {
        reactor_run_once(link->reactor, FINISH_TURN_MS);
    }
}
