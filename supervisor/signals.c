/* See signals.h. */
#include "supervisor/signals.h"

#include <signal.h>
#include <sys/signalfd.h>

#include "supervisor/signal_table.h"

void signals_hold(void)
{
    sigset_t held;

    (void)sigemptyset(&held);
    for (const struct signal_row *row = signal_table; row->name != NULL; row++) {
        if (row->meaning == SIGNAL_STOPS) {
            (void)sigaddset(&held, row->number);
        } else if (row->meaning == SIGNAL_IGNORED) {
            (void)signal(row->number, SIG_IGN);
        }
    }
    (void)sigprocmask(SIG_BLOCK, &held, NULL);
}

/* A parent may have left it ignored: it would never come, and an ignored SIGCHLD reaps by itself. */
static void take_over(sigset_t *set, int number)
{
    (void)signal(number, SIG_DFL);
    (void)sigaddset(set, number);
}

int signals_open(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    take_over(&set, SIGCHLD);
    for (const struct signal_row *row = signal_table; row->name != NULL; row++) {
        if (row->meaning == SIGNAL_IGNORED) {
            (void)signal(row->number, SIG_IGN);
        } else {
            take_over(&set, row->number);
        }
    }
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}
