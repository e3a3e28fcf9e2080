/*
 * The boot line (spec 3.1): every setting as the environment spells it, in the documented order, no secret in it.
 */
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/settings_parse.h"

#define KMS_SHOWN 4

static char *join_queues(const struct settings *settings)
{
    size_t size = 1;

    if (settings->all_queues) {
        return memory_copy("*", 1);
    }
    if (settings->queue_count == 0) {
        return memory_copy("-", 1);
    }
    for (size_t i = 0; i < settings->queue_count; i++) {
        size += strlen(settings->queues[i]) + 1;
    }
    char *text = memory_new(size, 1);
    char *at = text;
    for (size_t i = 0; i < settings->queue_count; i++) {
        if (i > 0) {
            *at++ = ',';
        }
        at = stpcpy(at, settings->queues[i]);
    }
    return text;
}

static char *spell_encryption(const struct settings *settings)
{
    const char *id = settings->sse_kms_key_id;

    if (settings->sse != SSE_KMS || id == NULL) {
        return memory_format("%s", settings->sse == SSE_KMS      ? "aws:kms"
                                   : settings->sse == SSE_AES256 ? "AES256"
                                                                 : "off");
    }
    size_t size = strlen(id);
    return memory_format("aws:kms(…%s)", size > KMS_SHOWN ? id + size - KMS_SHOWN : id);
}

/* Who and where: up to addressing and encryption. */
static char *first_half(const struct settings *settings)
{
    char *queues = join_queues(settings);
    char *queen = settings_public_url(settings->queen_url);
    char *sse = spell_encryption(settings);
    char *text = memory_format(
        "queen-s3 %s sink=%s instance=%s%s queues=%s partitions=discovery queen=%s token=%s s3=%s bucket=%s prefix=%s "
        "region=%s addressing=%s sse=%s",
        QUEEN_S3_VERSION, settings->sink, settings->instance, settings->instance_generated ? "(generated)" : "", queues,
        queen, settings->queen_token != NULL ? "<set>" : "<unset>", settings->endpoint, settings->bucket,
        settings->prefix, settings->region != NULL ? settings->region : "-",
        settings->path_style ? "path-style" : "virtual-host", sse);

    free(queues);
    free(queen);
    free(sse);
    return text;
}

static long long megabytes(int64_t bytes)
{
    return (long long)(bytes / 1048576);
}

static char *spell_listen(const struct settings *settings)
{
    bool brackets = strchr(settings->listen_host, ':') != NULL;

    return memory_format("%s%s%s:%s", brackets ? "[" : "", settings->listen_host, brackets ? "]" : "",
                         settings->listen_port);
}

/* A pool of connectors alone: all else is in their definitions. */
static char *spell_connectors(const struct settings *settings)
{
    char *listen = spell_listen(settings);
    char *line = memory_format("queen-s3 %s sink=%s memory_mb=%lld listen=%s shutdown_grace_ms=%lld", QUEEN_S3_VERSION,
                               settings->sink, megabytes(settings->memory_bytes), listen,
                               (long long)settings->shutdown_grace_ms);

    free(listen);
    return line;
}

char *settings_boot_line(const struct settings *settings)
{
    if (settings->bucket == NULL) {
        return spell_connectors(settings);
    }
    char *first = first_half(settings);
    char *listen = spell_listen(settings);
    char *line = memory_format(
        "%s format=%s compression=%s layout=%s align=%s target_mb=%lld max_window_ms=%lld start=%s "
        "checkpoint_every=%lld memory_mb=%lld fetch_concurrency=%lld discovery_interval_ms=%lld safe_guard_ms=%lld "
        "lease_ttl_ms=%lld multipart_threshold_mb=%lld listen=%s crash_at=%s workers=%lld",
        first, setting_format_name(settings->format), setting_compression_name(settings->compression),
        setting_layout_name(settings->layout), setting_align_name(settings->align), megabytes(settings->target_bytes),
        (long long)settings->max_window_ms, setting_choice_name(setting_starts, (int)settings->start),
        (long long)settings->checkpoint_every, megabytes(settings->memory_bytes),
        (long long)settings->fetch_concurrency, (long long)settings->discovery_interval_ms,
        (long long)settings->safe_guard_ms, (long long)settings->lease_ttl_ms,
        megabytes(settings->multipart_threshold_bytes), listen,
        setting_choice_name(setting_crash_points, (int)settings->crash_at), (long long)settings->workers);

    free(first);
    free(listen);
    return line;
}
