/*
 * The state of a pool at one moment (spec 4.3, 4.4): what the control socket answers as JSON, `status` prints as tables
 * and the status page shows. One struct for all three, so that none of them tells another story.
 *
 * The document, one object; times of this machine are texts as "2026-09-04T10:05:07.412000Z", null where there is none:
 *
 *   sink, instance, version     texts
 *   phase                       "starting" (probes), "running", "stopping"
 *   pid, uptimeMs, at           of the supervisor; `at` is the time of this document
 *   limitMs, late               the age above which a queue is late (3.11), and how many queues are
 *   workers[]                   by number:
 *     worker                    its number
 *     phase                     as pool.h names them: "starting", "running", "silent", "backoff", "stopping", "down"
 *     pid, uptimeMs             of its process, null where there is none
 *     restarts                  after it died
 *     lastExit                  null, or {"reason": "signal 9" or "exit 2", "at"}
 *     backoffMs                 until it is started again; 0 where it doesn't wait for that
 *     residentBytes             0 where there is no process
 *     queues                    how many it has
 *   queues[]                    by number:
 *     queue                     its name
 *     worker                    whose it is
 *     owner                     the instance that has its lease, null where none is known to
 *     state                     "claiming", "standby" (another instance has always had it), "recovering", "running",
 *                               "stopped" (by a failure; tried again), "lost" (to another instance), "drained"
 *     k, tEnd                   the last committed window, and its end on the broker's clock as text; null: not known
 *     lagSeconds                as queen_s3_lag_seconds; null: not known
 *     bufferedBytes
 *     late, staleMs             as /healthz has them
 *     lastError                 what keeps it from going on: null, or {"message", "at"}
 *   connectors[]                where there are any:
 *     connector                 its key, null for a file that does not even say that
 *     worker                    whose it is, null where its definition is broken
 *     state                     "running", "down"
 *     partitions, bufferedBytes
 *     consumed, processed       records, as the metrics have them
 *     reason                    why it is down, can't read or ends again and again; null: nothing to say
 */
#ifndef SUPERVISOR_SNAPSHOT_H
#define SUPERVISOR_SNAPSHOT_H

#include "common/byte_buffer.h"
#include "supervisor/workers.h"

struct snapshot_worker {
    uint64_t number;
    char *phase;
    int64_t pid; /* 0: no process */
    int64_t uptime_ms;
    uint64_t restarts;
    char *last_exit; /* NULL: none */
    char *last_exit_at;
    int64_t backoff_ms;
    uint64_t resident_bytes;
    uint64_t queue_count;
};

struct snapshot_queue {
    char *name;
    uint64_t worker;
    char *owner; /* NULL: none known */
    char *state;
    int64_t k; /* -1: not known */
    char *end; /* NULL: not known */
    bool has_lag;
    double lag_seconds;
    uint64_t buffered_bytes;
    bool late;
    int64_t stale_ms;
    char *error; /* NULL: none */
    char *error_at;
};

struct snapshot_connector {
    char *key;      /* NULL: not known */
    int64_t worker; /* -1: none */
    bool running;
    uint64_t partitions;
    uint64_t buffered_bytes;
    uint64_t consumed;
    uint64_t processed;
    char *reason; /* NULL: none */
};

struct snapshot {
    char *sink;
    char *instance;
    char *version;
    char *phase;
    char *at;
    int64_t pid;
    int64_t uptime_ms;
    int64_t limit_ms;
    uint64_t late_count;
    struct snapshot_worker *workers;
    size_t worker_count;
    struct snapshot_queue *queues;
    size_t queue_count;
    struct snapshot_connector *connectors;
    size_t connector_count;
};

/* What a supervisor knows. */
struct snapshot_source {
    const struct settings *settings;
    const struct collect *collect;
    const struct workers *workers;
    const char *phase;
    struct mono_ms started;
    struct mono_ms now;
    struct wall_ms wall;
};

void snapshot_take(struct snapshot *snapshot, const struct snapshot_source *source);
void snapshot_free(struct snapshot *snapshot);

/* The document, on one line without a line feed; malloc, never NULL. */
char *snapshot_write(const struct snapshot *snapshot);
/* And back, from whoever answers: 0, or QS_ERROR_BODY where it isn't such a document. Names that it doesn't know are
 * passed over, so that an older `status` reads a newer pool. */
int snapshot_read(const char *text, size_t size, struct snapshot *snapshot, struct error *error);

/* For a person: late queues first, the stalest of them on top, then those with an error, then the rest, by name. */
void snapshot_sort(struct snapshot *snapshot);
/* Milliseconds from `time` (a text as above) to the snapshot; -1 where either isn't a time. */
int64_t snapshot_age_ms(const struct snapshot *snapshot, const char *time);
/* Its lag in milliseconds; 0 where it isn't known. */
int64_t snapshot_lag_ms(const struct snapshot_queue *queue);
/* Why a queue is as it is, in one line for a person; NULL where there is nothing to say. malloc. */
char *snapshot_reason(const struct snapshot *snapshot, const struct snapshot_queue *queue);

#endif
