/*
 * The boot probes of spec 3.2, for a short-lived child: an empty partitions/changed, then a HEAD of the prefix (a 403 is
 * asked once more as a list, spec 4.4); with `*` the queue list in between. Each has 30 s and is not repeated. They block:
 * that is what the child is for.
 */
#include <stdlib.h>
#include <string.h>

#include "common/file_store.h"
#include "common/memory.h"
#include "worker/services.h"
#include "worker/worker.h"

#define PROBE_MS 30000

struct probe {
    struct reactor *reactor;
    struct services services;
    const struct settings *settings;
    bool done;
    struct error error;
    char **names;
    size_t count;
    int status; /* of the HEAD */
};

static void probe_end(struct probe *probe, const struct error *error)
{
    probe->done = true;
    probe->error = *error;
}

static int probe_wait(struct probe *probe, const char *what, struct error *error)
{
    int64_t deadline = clock_mono().v + PROBE_MS;
    while (!probe->done && clock_mono().v < deadline)
        reactor_run_once(probe->reactor, deadline - clock_mono().v);
    if (!probe->done)
        return error_set(error, QS_ERROR_TRANSPORT, "%s: no answer in %d s", what, PROBE_MS / 1000);
    *error = probe->error;
    return error->code;
}

static void changed_done(void *argument, const struct error *error, const struct changed_answer *answer)
{
    (void)answer;
    probe_end(argument, error);
}

static int probe_queen(struct probe *probe, struct error *error)
{
    probe->done = false;
    probe->services.queen->operations->changed(probe->services.queen, NULL, 0, changed_done, probe);
    if (probe_wait(probe, "POST /api/v1/partitions/changed", error) == 0)
        return 0;
    error_prefix(error,
                 "cannot reach Queen at %s (check QUEEN_URL, and QUEEN_TOKEN and its scope: consume through a proxy, "
                 "read-write on a broker with JWT)",
                 probe->settings->queen_url);
    return error->code;
}

static void queues_done(void *argument, const struct error *error, const struct queues_answer *answer)
{
    struct probe *probe = argument;
    if (error->code == QS_OK) {
        probe->names = memory_new(answer->count, sizeof *probe->names);
        for (probe->count = 0; probe->count < answer->count; probe->count++)
            probe->names[probe->count] =
                memory_copy(answer->queues[probe->count].bytes, answer->queues[probe->count].size);
    }
    probe_end(probe, error);
}

static int probe_queues(struct probe *probe, struct error *error)
{
    probe->done = false;
    probe->services.queen->operations->queues(probe->services.queen, queues_done, probe);
    if (probe_wait(probe, "GET /api/v1/resources/queues", error) == 0)
        return 0;
    error_prefix(error, "cannot reach Queen at %s (QUEEN_S3_QUEUES=* needs a token with the read scope)",
                 probe->settings->queen_url);
    return error->code;
}

static void head_done(void *argument, const struct error *error, const struct head_answer *answer)
{
    (void)answer;
    probe_end(argument, error);
}

static void list_done(void *argument, const struct error *error, const struct listed_object *objects, size_t count,
                      const char *next)
{
    (void)objects;
    (void)count;
    (void)next;
    probe_end(argument, error);
}

static int probe_bucket(struct probe *probe, struct error *error)
{
    struct object_store *store = probe->services.store;
    char *prefix = memory_format("%s/", probe->settings->prefix);
    probe->done = false;
    store->operations->head(store, prefix, head_done, probe);
    int status = probe_wait(probe, "HEAD of the prefix", error);
    if (status == QS_ERROR_FORBIDDEN) {
        probe->done = false;
        store->operations->list(store, prefix, NULL, list_done, probe);
        status = probe_wait(probe, "list of the prefix", error);
    }
    free(prefix);
    if (status == 0 || status == QS_ERROR_NOT_FOUND)
        return 0;
    error_prefix(error,
                 "cannot use bucket %s at %s (check QUEEN_S3_ENDPOINT, QUEEN_S3_REGION, QUEEN_S3_BUCKET, "
                 "QUEEN_S3_ACCESS_KEY, QUEEN_S3_SECRET_KEY, QUEEN_S3_PATH_STYLE)",
                 probe->settings->bucket, probe->settings->endpoint);
    return status;
}

static int probe_all(struct probe *probe, struct error *error)
{
    if (probe_queen(probe, error) != 0)
        return 3;
    if (probe->settings->all_queues && probe_queues(probe, error) != 0)
        return 3;
    if (probe->settings->file_root != NULL)
        return file_store_probe(probe->settings->file_root, probe->settings->bucket, error) == 0 ? 0 : 3;
    return probe_bucket(probe, error) == 0 ? 0 : 3;
}

int worker_probe(const struct settings *settings, char ***names, size_t *count, struct error *error)
{
    struct probe probe = {.settings = settings};
    *names = NULL;
    *count = 0;
    probe.reactor = reactor_create(error);
    if (probe.reactor == NULL)
        return 3;
    int status = 3;
    if (services_open(&probe.services, probe.reactor, settings, error) == 0) {
        status = probe_all(&probe, error);
        services_close(&probe.services);
    }
    reactor_destroy(probe.reactor);
    *names = probe.names;
    *count = probe.count;
    return status;
}
