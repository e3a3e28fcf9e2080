/*
 * The short-lived child that asks Queen and the bucket (spec 3.2, 4.1): the supervisor itself never does, so that a hung
 * broker stalls neither signals nor `/healthz`. It stays in the supervisor's group. Its result comes over a pipe.
 */
#ifndef SUPERVISOR_PROBE_H
#define SUPERVISOR_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/clock.h"
#include "common/settings.h"
#include "supervisor/log_forward.h"

#define PROBE_FAILED 3 /* the exit code of spec 3.2 */

/* Three calls of 30 s each (spec 3.2), and some for the names to resolve; then it is killed. */
#define PROBE_LIMIT_MS 100000

/* worker_probe() of worker/worker.h. */
typedef int probe_function(const struct settings *settings, char ***names, size_t *count, struct error *error);
/* file_store_clean(), for a file: endpoint. */
typedef int probe_clean_function(const char *root, const char *bucket, struct error *error);

struct probe {
    pid_t pid;      /* 0: none under way */
    int descriptor; /* -1 where it has been read to its end */
    struct log_source log;
    struct mono_ms deadline;
    char *bytes; /* what it has said so far */
    size_t size;
    size_t capacity;
};

struct probe_result {
    int code; /* 0, or 3 with the line */
    char message[512];
    char **names; /* with all_queues in settings */
    size_t count;
};

void probe_init(struct probe *probe, struct log_forward *forward);
/* clean: not NULL at boot; called after both probes where the endpoint is a folder. 0 or a negative enum qs_error. */
int probe_start(struct probe *probe, const struct settings *settings, probe_function *ask, probe_clean_function *clean,
                struct mono_ms now, struct error *error);
/* Reads what is there of its result; true at the end of what it says. */
bool probe_read(struct probe *probe);
/* It is dead: what it found, probe_result_free() to be called. Ready for the next start. */
void probe_finish(struct probe *probe, int wait_status, struct mono_ms now, struct probe_result *result);
void probe_kill(const struct probe *probe);
void probe_result_free(struct probe_result *result);

#endif
