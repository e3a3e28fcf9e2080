/*
 * The boot probes of spec 3.2, for a short-lived child, and for `check`: an empty partitions/changed, then a HEAD of the prefix (a 403 is
 * asked once more as a list, spec 4.4); with `*` the queue list in between. Each has 30 s and is not repeated. They block:
 * that is what the child is for. `check` asks for each queue too, with a partition of it: what the broker is shows there.
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
    char *const *asked; /* the queues of this call */
    bool thorough;      /* for check */
    struct worker_findings *findings;
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
    struct probe *probe = argument;
    if (error->code == QS_OK) {
        probe->findings->safe_time = answer->safe_time;
        probe->findings->degraded = answer->degraded;
    }
    probe_end(probe, error);
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

static int list_prefix(struct probe *probe, const char *prefix, struct error *error)
{
    struct object_store *store = probe->services.store;
    probe->done = false;
    store->operations->list(store, prefix, NULL, list_done, probe);
    return probe_wait(probe, "list of the prefix", error);
}

static int head_prefix(struct probe *probe, const char *prefix, struct error *error)
{
    struct object_store *store = probe->services.store;
    probe->done = false;
    store->operations->head(store, prefix, head_done, probe);
    return probe_wait(probe, "HEAD of the prefix", error);
}

/* A HEAD that finds nothing can't say whether it is the bucket that isn't there (NoSuchBucket); a list can, where it is
 * allowed. */
static int look_for_bucket(struct probe *probe, const char *prefix, struct error *error)
{
    struct error listing;
    int code = list_prefix(probe, prefix, &listing);
    if (code == QS_ERROR_REFUSED) {
        *error = listing;
        return code;
    }
    return 0;
}

static int ask_for_prefix(struct probe *probe, struct error *error)
{
    struct worker_findings *findings = probe->findings;
    char *prefix = memory_format("%s/", probe->settings->prefix);
    int code = head_prefix(probe, prefix, error);
    findings->bucket_answer = code == 0 ? BUCKET_THERE : BUCKET_EMPTY;
    if (code == QS_ERROR_FORBIDDEN) {
        findings->bucket_answer = BUCKET_LISTED;
        code = list_prefix(probe, prefix, error);
    } else if (code == QS_ERROR_NOT_FOUND) {
        code = probe->thorough ? look_for_bucket(probe, prefix, error) : 0;
    }
    free(prefix);
    return code;
}

static int probe_bucket(struct probe *probe, struct error *error)
{
    if (ask_for_prefix(probe, error) == 0)
        return 0;
    error_prefix(error,
                 "cannot use bucket %s at %s (check QUEEN_S3_ENDPOINT, QUEEN_S3_REGION, QUEEN_S3_BUCKET, "
                 "QUEEN_S3_ACCESS_KEY, QUEEN_S3_SECRET_KEY, QUEEN_S3_PATH_STYLE)",
                 probe->settings->bucket, probe->settings->endpoint);
    return error->code;
}

/* A bucket, or a folder in its place. */
static int probe_place(struct probe *probe, struct error *error)
{
    const struct settings *settings = probe->settings;
    if (settings->file_root == NULL)
        return probe_bucket(probe, error);
    probe->findings->bucket_answer = BUCKET_WRITTEN;
    return file_store_probe(settings->file_root, settings->bucket, error);
}

static int probe_all(struct probe *probe, struct error *error)
{
    if (probe_queen(probe, error) != 0)
        return 3;
    if (probe->settings->all_queues && probe_queues(probe, error) != 0)
        return 3;
    return probe_place(probe, error) == 0 ? 0 : 3;
}

int worker_probe(const struct settings *settings, char ***names, size_t *count, struct error *error)
{
    struct worker_findings findings = {0};
    struct probe probe = {.settings = settings, .findings = &findings};
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

/* ---- for check ---- */

static void look_at_queue(struct probe *probe, const char *name, const struct changed_entry *entry)
{
    if (entry->status == CHANGED_UNKNOWN_QUEUE && !probe->settings->all_queues)
        probe->names[probe->count++] = memory_copy_text(name);
    if (entry->status == CHANGED_OK && entry->count > 0)
        probe->findings->generation = entry->partitions[0].has_id ? GENERATION_2 : GENERATION_1;
}

static void asked_done(void *argument, const struct error *error, const struct changed_answer *answer)
{
    struct probe *probe = argument;
    for (size_t i = 0; error->code == QS_OK && i < answer->count; i++)
        look_at_queue(probe, probe->asked[i], &answer->entries[i]);
    probe_end(probe, error);
}

/* One partition of each of these queues, which a call can hold. */
static int ask_for_queues(struct probe *probe, char *const *names, size_t count, struct error *error)
{
    struct changed_request_entry entries[QUEEN_CHANGED_ENTRIES_MAX] = {0};
    struct queen_api *queen = probe->services.queen;
    for (size_t i = 0; i < count; i++) {
        entries[i].queue = (struct name){names[i], strlen(names[i])};
        entries[i].limit = 1;
    }
    probe->asked = names;
    probe->done = false;
    queen->operations->changed(queen, entries, count, asked_done, probe);
    if (probe_wait(probe, "POST /api/v1/partitions/changed", error) == 0)
        return 0;
    error_prefix(error, "cannot ask Queen at %s for its queues", probe->settings->queen_url);
    return error->code;
}

static size_t call_size(size_t left)
{
    return left < QUEEN_CHANGED_ENTRIES_MAX ? left : QUEEN_CHANGED_ENTRIES_MAX;
}

/* Each queue of the settings: names become those that aren't there. */
static int ask_for_named(struct probe *probe, struct error *error)
{
    const struct settings *settings = probe->settings;
    int code = 0;
    probe->names = memory_new(settings->queue_count, sizeof *probe->names);
    for (size_t i = 0; i < settings->queue_count && code == 0; i += QUEEN_CHANGED_ENTRIES_MAX)
        code = ask_for_queues(probe, settings->queues + i, call_size(settings->queue_count - i), error);
    return code;
}

/* All there are; a partition of the first of them, to know the broker by. */
static int ask_for_all(struct probe *probe, struct error *error)
{
    int code = probe_queues(probe, error);
    if (code != 0 || probe->count == 0)
        return code;
    return ask_for_queues(probe, probe->names, call_size(probe->count), error);
}

typedef int probe_side(struct probe *probe, struct error *error);
typedef int probe_open(struct services *services, struct reactor *reactor, const struct settings *settings,
                       struct error *error);

static int check_queen(struct probe *probe, struct error *error)
{
    int64_t start = clock_mono().v;
    int code = probe_queen(probe, error);
    probe->findings->queen_ms = clock_mono().v - start;
    if (code != 0)
        return code;
    return probe->settings->all_queues ? ask_for_all(probe, error) : ask_for_named(probe, error);
}

static int check_place(struct probe *probe, struct error *error)
{
    int64_t start = clock_mono().v;
    int code = probe_place(probe, error);
    probe->findings->bucket_ms = clock_mono().v - start;
    return code;
}

/* A loop and a client of its own each: an answer of the one that comes too late is not taken for one of the other, and
 * the one is asked too where the other's client can't be had. */
static void check_side(struct probe *probe, probe_open *open, probe_side *ask, struct error *error)
{
    error_clear(error);
    probe->reactor = reactor_create(error);
    if (probe->reactor == NULL)
        return;
    if (open(&probe->services, probe->reactor, probe->settings, error) == 0) {
        if (ask(probe, error) == 0)
            error_clear(error);
        services_close(&probe->services);
    }
    reactor_destroy(probe->reactor);
}

void worker_check(const struct settings *settings, struct worker_findings *findings)
{
    struct probe probe = {.settings = settings, .thorough = true, .findings = findings};
    *findings = (struct worker_findings){0};
    check_side(&probe, services_open_queen, check_queen, &findings->queen);
    check_side(&probe, services_open_store, check_place, &findings->bucket);
    findings->queues = probe.names;
    findings->queue_count = probe.count;
}

void worker_findings_free(struct worker_findings *findings)
{
    for (size_t i = 0; i < findings->queue_count; i++)
        free(findings->queues[i]);
    free(findings->queues);
    *findings = (struct worker_findings){0};
}
