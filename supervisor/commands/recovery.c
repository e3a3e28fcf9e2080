/* When a lost pointer may be rebuilt: recovery.h. */
#include "supervisor/commands/recovery.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool ends_in(const char *key, const char *end)
{
    size_t size = strlen(key);
    size_t end_size = strlen(end);

    return size > end_size && key[size - end_size - 1] == ':' && strcmp(key + size - end_size, end) == 0;
}

static void take_lease(struct recovery *recovery, const cJSON *value)
{
    const cJSON *instance = cJSON_GetObjectItemCaseSensitive(value, "instance");

    recovery->leased = true;
    (void)snprintf(recovery->holder, sizeof recovery->holder, "%s",
                   cJSON_IsString(instance) ? instance->valuestring : "(nameless)");
}

void recovery_take_row(struct recovery *recovery, const struct settings *settings, const struct kv_row *row)
{
    struct broker_us end;

    if (ends_in(row->key, "committed")) {
        recovery->committed_version = row->version;
        recovery->committed =
            pointer_read(row->value, &recovery->committed_k, &end) ? RECOVERY_READ : RECOVERY_UNREADABLE;
    } else if (ends_in(row->key, "intent")) {
        recovery->intent = intent_read(row->value, settings, &recovery->window) ? RECOVERY_READ : RECOVERY_UNREADABLE;
    } else if (ends_in(row->key, "lease")) {
        take_lease(recovery, row->value);
    }
}

void recovery_take_window(struct recovery *recovery, const struct manifest *manifest)
{
    recovery->last = manifest->bounds;
    recovery->records = manifest->records;
    recovery->bytes = manifest->bytes;
    if (recovery->intent == RECOVERY_READ && recovery->window.bounds.k == manifest->bounds.k) {
        recovery->named = manifest->bounds;
    }
}

void recovery_free(struct recovery *recovery)
{
    intent_free(&recovery->window);
}

static bool is_set_back(const struct recovery *recovery)
{
    return recovery->intent == RECOVERY_READ && recovery->window.bounds.k > recovery->committed_k + 1;
}

int64_t recovery_beyond(const struct recovery *recovery)
{
    if (recovery->committed != RECOVERY_READ || is_set_back(recovery)) {
        return 0;
    }
    bool begun = recovery->intent == RECOVERY_READ && recovery->window.bounds.k == recovery->committed_k + 1;
    return recovery->committed_k + (begun ? 2 : 1);
}

int recovery_check_documents(const struct recovery *recovery, const struct settings *settings, struct error *error)
{
    if (recovery->committed == RECOVERY_READ && !is_set_back(recovery) && !recovery->overtaken) {
        return error_set(error, QS_ERROR_INPUT,
                         "the pointer is there, at window %" PRId64 ": there is nothing to recover",
                         recovery->committed_k);
    }
    if (recovery->leased) {
        return error_set(error, QS_ERROR_INPUT,
                         "instance %s holds the lease: stop it, or wait until the lease of one that died is over "
                         "(%" PRId64 " ms with this QUEEN_S3_LEASE_TTL_MS)",
                         recovery->holder, settings->lease_ttl_ms);
    }
    if (recovery->intent == RECOVERY_UNREADABLE) {
        return error_set(error, QS_ERROR_INPUT,
                         "there is an intent that can't be read, so what was begun isn't known: mend it first");
    }
    if (recovery->intent == RECOVERY_READ && strcmp(recovery->window.prefix, settings->prefix) != 0) {
        return error_set(error, QS_ERROR_INPUT, "the intent is for the prefix %s: set QUEEN_S3_PREFIX, which is %s",
                         recovery->window.prefix, settings->prefix);
    }
    return 0;
}

static int refuse_intent(const struct window_bounds *intent, const struct window_bounds *lake, const char *what,
                         struct error *error)
{
    char start[CLOCK_TEXT_SIZE];
    char end[CLOCK_TEXT_SIZE];
    char other[CLOCK_TEXT_SIZE];

    clock_format_broker(intent->start, start);
    clock_format_broker(intent->end, end);
    clock_format_broker(lake->end, other);
    return error_set(error, QS_ERROR_INPUT,
                     "the intent for window %" PRId64 ", from %s to %s, disagrees with %s, which ends at %s", intent->k,
                     start, end, what, other);
}

int recovery_check_intent(const struct recovery *recovery, struct error *error)
{
    const struct window_bounds *intent = &recovery->window.bounds;

    if (recovery->intent != RECOVERY_READ) {
        return 0;
    }
    if (intent->k > recovery->last.k + 1) {
        return error_set(error, QS_ERROR_INPUT,
                         "the intent is for window %" PRId64 " and the last manifest is %" PRId64
                         ": those between are missing",
                         intent->k, recovery->last.k);
    }
    if (intent->k == recovery->last.k + 1 && intent->start.v < recovery->last.end.v) {
        return refuse_intent(intent, &recovery->last, "the last window", error);
    }
    if (recovery->named.k == intent->k &&
        (intent->start.v != recovery->named.start.v || intent->end.v != recovery->named.end.v)) {
        return refuse_intent(intent, &recovery->named, "the manifest of that window", error);
    }
    return 0;
}
