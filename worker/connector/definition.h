/*
 * A connector's definition (seed, "Quick start"; spec 5.4): read from its TOML file, with what the environment overrides,
 * and checked whole. Unknown keys are refused.
 */
#ifndef WORKER_CONNECTOR_DEFINITION_H
#define WORKER_CONNECTOR_DEFINITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/connector/options.h"
#include "worker/connector/record.h"

/* What becomes of a payload that isn't what its topic's schema says. */
enum on_undecodable {
    UNDECODABLE_BASE64, /* it lands as a base64 string */
    UNDECODABLE_SKIP,   /* counted and logged with its offset */
    UNDECODABLE_STOP
};

struct definition_property {
    char *name;
    char *value;
};

/* One [[topics]]: a consumer. */
struct definition_topics {
    char **subscriptions; /* names, and patterns as librdkafka takes them: `^(…)` */
    size_t subscription_count;
    enum sink_schema schema;
    uint32_t batch_length;
    int64_t poll_interval_ms;
    char *consumer_group;
    bool from_end; /* auto_offset_reset: latest */
    struct definition_property *properties;
    size_t property_count;
};

struct definition {
    char *source; /* its file */
    char *key;
    char *name;
    int64_t version;
    enum on_undecodable on_undecodable;
    struct definition_topics *topics;
    size_t topic_count;
    struct sink_options options;
};

/* A definition, or a file, that can't be used: it stops nothing but itself. */
struct definition_fault {
    char *source;  /* the file */
    char *key;     /* NULL where the file doesn't even say that */
    char *message; /* one line, begins with the file */
};

struct definitions {
    struct definition *list; /* in order of their keys; what is not enabled is left out */
    size_t count;
    struct definition_fault *faults;
    size_t fault_count;
    size_t disabled;
};

/* Reads files, and of folders the files `*.toml` that aren't hidden. environment is as environ(7); overrides are
 *
 *     PICOMQ_CONNECTORS_SINK_<KEY>_<FIELD>                    of the definition's own fields
 *     PICOMQ_CONNECTORS_SINK_<KEY>_TOPICS_<n>_<FIELD>         of the n-th [[topics]], from 0
 *     PICOMQ_CONNECTORS_SINK_<KEY>_PLUGIN_CONFIG_<FIELD>
 *
 * in any case, a character of the key that no variable can have as `_`. 0, or a negative enum qs_error where a folder
 * can't be read at all. definitions_free() in either case. */
int definitions_load(const char *const *paths, size_t count, char *const *environment, struct definitions *definitions,
                     struct error *error);
void definitions_free(struct definitions *definitions);

/* Puts what `fresh`, read from the same places later, has of each key in its place, and what was there into fresh. Keys,
 * their strings and their numbers stay. What that leaves undone is logged, a line each: a definition that is broken now
 * or gone stays as it was, and one that is new stays out. */
void definitions_renew(struct definitions *definitions, struct definitions *fresh);

const char *sink_schema_name(enum sink_schema schema);
bool sink_schema_parse(const char *name, enum sink_schema *schema);
const char *on_undecodable_name(enum on_undecodable what);
bool on_undecodable_parse(const char *name, enum on_undecodable *what);

#endif
