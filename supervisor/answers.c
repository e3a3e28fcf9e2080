/* What the pool says of itself: answers.h. */
#include "supervisor/answers.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "supervisor/exposition.h"
#include "supervisor/health.h"
#include "supervisor/page.h"
#include "supervisor/snapshot.h"

static void take(const struct answers *answers, struct snapshot *snapshot)
{
    struct snapshot_source source = {
        .settings = answers->settings,
        .collect = answers->collect,
        .workers = answers->workers,
        .phase = answers->phase,
        .started = answers->started,
        .now = clock_mono(),
        .wall = clock_wall(),
    };

    snapshot_take(snapshot, &source);
}

char *answers_request(void *argument, const char *request)
{
    struct snapshot snapshot;
    char *document;

    if (strcmp(request, "status") != 0) {
        return NULL;
    }
    take(argument, &snapshot);
    document = snapshot_write(&snapshot);
    snapshot_free(&snapshot);
    return document;
}

static char *write_page(const struct answers *answers)
{
    struct snapshot snapshot;
    char *page;

    take(answers, &snapshot);
    snapshot_sort(&snapshot);
    page = page_write(&snapshot);
    snapshot_free(&snapshot);
    return page;
}

static char *write_metrics(struct answers *answers)
{
    struct exposition_worker *workers = memory_new(answers->workers->count + 1, sizeof *workers);
    struct exposition exposition = {
        .collect = answers->collect,
        .connectors = answers->workers->connectors,
        .workers = workers,
        .worker_count = answers->workers->count,
        .version = QUEEN_S3_VERSION,
        .formats = answers->formats |= 1U << answers->settings->format,
        .now = clock_mono(),
        .wall = clock_wall(),
    };
    char *text;

    workers_describe(answers->workers, workers);
    text = exposition_write(&exposition);
    free(workers);
    return text;
}

bool answers_path(void *argument, const char *path, struct listener_answer *answer)
{
    struct answers *answers = argument;
    const struct settings *settings = answers->settings;

    if (strcmp(path, "/") == 0) {
        answer->content_type = PAGE_CONTENT_TYPE;
        answer->security_policy = page_security_policy();
        answer->status = 200;
        answer->body = write_page(answers);
        return true;
    }
    if (strcmp(path, "/healthz") == 0) {
        int64_t limit = health_limit_ms(settings->max_window_ms, settings->lease_ttl_ms);

        answer->content_type = "application/json";
        answer->status =
            health_answer(answers->collect, answers->workers->connectors, limit, clock_mono(), &answer->body);
        return true;
    }
    if (strcmp(path, "/metrics") == 0) {
        answer->content_type = EXPOSITION_CONTENT_TYPE;
        answer->status = 200;
        answer->body = write_metrics(answers);
        return true;
    }
    return false;
}
