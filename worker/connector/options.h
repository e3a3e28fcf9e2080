/*
 * `[plugin_config]` of the S3 sink, read from its JSON text (seed, "Configuration"; spec 5.2, 5.3) and checked whole.
 *
 * There are two kinds of refusal, which the plugin's entry points tell apart (spec 5.1): a text that can't be read as
 * this configuration (not JSON, a required key missing, a value of a wrong type, a key twice), and values that are read
 * but aren't accepted. Messages name key, value and what is accepted, and never a credential's value.
 */
#ifndef WORKER_CONNECTOR_OPTIONS_H
#define WORKER_CONNECTOR_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/settings.h"
#include "worker/connector/open_file.h"

enum sink_durability { SINK_BUFFERED, SINK_SPOOLED, SINK_UPLOADED };

struct sink_options {
    /* Those fields that name a bucket, as s3_store.h takes them: endpoint, file_root, region, bucket, prefix (NULL:
     * none), access_key and secret_key (NULL: the default chain, credentials.h), path_style, ca_file. */
    struct settings store;
    char *path_template;
    struct sink_shape shape;
    struct sink_limits limits;
    uint32_t max_attempts; /* at least 1 */
    int64_t retry_delay_ms;
    int64_t max_file_age_ms; /* 0: none */
    enum sink_durability durability;
    char *spool_dir; /* with SINK_SPOOLED, else NULL */
    /* Whether they were given at all: a connector worker refuses them by name (spec 5.4). */
    bool durability_given;
    bool spool_dir_given;
};

enum sink_refusal {
    SINK_ACCEPTED = 0,
    SINK_REFUSED = 1, /* pico_sink_open()'s codes, spec 5.1 */
    SINK_UNREADABLE = -1
};

/* json need not be NUL-terminated. On a refusal error->message says why and nothing is left to free. */
enum sink_refusal sink_options_parse(const char *json, size_t size, struct sink_options *options, struct error *error);
/* Secrets are overwritten before they are freed. */
void sink_options_free(struct sink_options *options);

/* The names of all keys, NULL-terminated: for who describes them. Not from two threads at a time. */
const char *const *sink_option_names(void);

/* What JSON has for a key's value: for who reads values that are all text. A size is as good as a text. */
enum sink_option_form { SINK_OPTION_TEXT, SINK_OPTION_NUMBER, SINK_OPTION_SWITCH };
/* SINK_OPTION_TEXT for a key that there is not. */
enum sink_option_form sink_option_form(const char *name);

/* "https://s3.eu-central-1.amazonaws.com" and its like in the other partitions of AWS; malloc. */
char *sink_aws_endpoint(const char *service, const char *region);

#endif
