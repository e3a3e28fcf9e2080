/* See signal_table.h. */
#include "supervisor/signal_table.h"

#include <signal.h>
#include <stddef.h>

const struct signal_row signal_table[] = {
    {SIGTERM, SIGNAL_STOPS, "SIGTERM",
     "Stops the pool: windows that are worth it are finished within QUEEN_S3_SHUTDOWN_GRACE_MS. A second one kills "
     "what is left at once, where it comes 200 ms after the first or later: what is sooner is one stop told twice, as "
     "timeout(1) does."},
    {SIGINT, SIGNAL_STOPS, "SIGINT", "Likewise."},
    {SIGHUP, SIGNAL_RELOADS, "SIGHUP",
     "Reads the file of -f again and, where it holds, restarts one worker after the other with it; queues lag by a "
     "moment, and nothing is lost. One that doesn't hold is logged and changes nothing. QUEEN_S3_SINK, "
     "QUEEN_S3_QUEUES, QUEEN_S3_WORKERS, QUEEN_S3_LISTEN, QUEEN_S3_CONTROL and QUEEN_S3_CONNECTORS stay as they are "
     "until the pool is started anew, which is logged too. With it the connectors' definitions are read again: one "
     "that is broken is logged, and its connector keeps what it had; connectors come and go only when the pool is "
     "started anew. A worker that dies before it reports again ends the round; another SIGHUP meanwhile means one "
     "more round afterwards."},
    {SIGUSR1, SIGNAL_SHOWS, "SIGUSR1",
     "Logs a line for each queue: its state, its window, the bytes it holds, how far it lags; first those that fail, "
     "then those that lag most. Where a worker has more queues than the log takes lines, one line counts them by state, "
     "and the worst follow."},
    {SIGPIPE, SIGNAL_IGNORED, "SIGPIPE", "Ignored."},
    {0, SIGNAL_IGNORED, NULL, NULL},
};

const struct signal_row *signal_table_find(int number)
{
    for (const struct signal_row *row = signal_table; row->name != NULL; row++) {
        if (row->number == number) {
            return row;
        }
    }
    return NULL;
}
