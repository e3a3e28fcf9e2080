/*
 * See reload.h. What stays is exchanged between the old settings and the new ones, so that each string has one owner all
 * the time.
 */
#include "supervisor/reload.h"

#include <stdint.h>
#include <string.h>

#include "common/log.h"

static bool differs(const char *one, const char *other)
{
    return (one == NULL) != (other == NULL) || (one != NULL && strcmp(one, other) != 0);
}

static void exchange(char **one, char **other)
{
    char *kept = *one;

    *one = *other;
    *other = kept;
}

static bool queues_differ(const struct settings *one, const struct settings *other)
{
    bool differ = one->all_queues != other->all_queues || one->queue_count != other->queue_count;

    for (size_t i = 0; !differ && i < one->queue_count; i++) {
        differ = strcmp(one->queues[i], other->queues[i]) != 0;
    }
    return differ;
}

static void exchange_queues(struct settings *one, struct settings *other)
{
    struct settings kept = *one;

    one->queues = other->queues;
    one->queue_count = other->queue_count;
    one->all_queues = other->all_queues;
    other->queues = kept.queues;
    other->queue_count = kept.queue_count;
    other->all_queues = kept.all_queues;
}

static void log_kept(const char *variable)
{
    log_line(LOG_WARN, NULL, "%s has changed, which takes a restart of the whole pool: left as it was", variable);
}

/* The default of QUEEN_S3_WORKERS follows the number of queues: it hasn't changed by itself where they have. */
static void keep(struct settings *current, struct settings *fresh)
{
    bool queues = queues_differ(current, fresh);

    if (differs(current->sink, fresh->sink)) {
        log_kept("QUEEN_S3_SINK");
    }
    if (queues) {
        log_kept("QUEEN_S3_QUEUES");
    }
    if (!queues && current->workers != fresh->workers) {
        log_kept("QUEEN_S3_WORKERS");
    }
    if (differs(current->listen_host, fresh->listen_host) || differs(current->listen_port, fresh->listen_port)) {
        log_kept("QUEEN_S3_LISTEN");
    }
    if (differs(current->control, fresh->control)) {
        log_kept("QUEEN_S3_CONTROL");
    }
    if (differs(current->connectors, fresh->connectors)) {
        log_kept("QUEEN_S3_CONNECTORS");
    }
    exchange(&current->sink, &fresh->sink);
    exchange(&current->connectors, &fresh->connectors);
    exchange_queues(current, fresh);
    fresh->workers = current->workers;
    exchange(&current->listen_host, &fresh->listen_host);
    exchange(&current->listen_port, &fresh->listen_port);
    exchange(&current->control, &fresh->control);
    if (current->instance_generated && fresh->instance_generated) {
        exchange(&current->instance, &fresh->instance);
    }
}

int reload_settings(struct settings *settings, size_t workers, reload_read *read, void *argument, struct error *error)
{
    struct settings fresh;
    int code = read(argument, &fresh, error);

    if (code != 0) {
        return code;
    }
    code = settings_check_memory(&fresh, workers, error);
    if (code != 0) {
        settings_free(&fresh);
        return code;
    }
    keep(settings, &fresh);
    settings_free(settings);
    *settings = fresh;
    return 0;
}
