/* What options.c reads and options_check.c makes sense of. Nobody else includes this. */
#ifndef WORKER_CONNECTOR_OPTIONS_INTERNAL_H
#define WORKER_CONNECTOR_OPTIONS_INTERNAL_H

#include "worker/connector/options.h"

struct option_choice {
    const char *name; /* NULL: not given */
    int value;
};

struct option_number {
    bool given;
    const char *text; /* of a size given as text, else NULL */
    uint64_t value;   /* of a size in bytes, of a duration in milliseconds, of a switch 0 or 1 */
};

/* The members as they stand in the text; NULL or not given where absent or null. */
struct option_values {
    const char *bucket;
    const char *region;
    const char *prefix;
    const char *endpoint;
    const char *access_key_id;
    const char *secret_access_key;
    const char *path_template;
    const char *spool_dir;
    struct option_choice file_rotation;
    struct option_choice output_format;
    struct option_choice durability;
    struct option_choice compression;
    struct option_number max_file_size;
    struct option_number max_messages_per_file;
    struct option_number include_metadata;
    struct option_number include_headers;
    struct option_number max_attempts;
    struct option_number max_retries;
    struct option_number retry_delay;
    struct option_number path_style;
    struct option_number max_file_age;
    bool met[32]; /* a row each: to find what is given twice */
};

enum option_kind { OPTION_TEXT, OPTION_CHOICE, OPTION_SIZE, OPTION_DURATION, OPTION_COUNT, OPTION_SWITCH };

struct option_row {
    const char *name;
    enum option_kind kind;
    size_t offset;        /* in struct option_values */
    const char *expected; /* behind "expected " where it is something else */
    bool secret;          /* no message shows its value */
    const struct option_choice *choices;
    enum sink_refusal refusal; /* of a choice that isn't one */
    bool exact;                /* of a choice: case counts */
    uint64_t most;             /* of a count */
};

/* The values together, with their defaults. error may be NULL: only whether they are unreadable then counts. On a
 * refusal options hold what sink_options_free() frees. */
enum sink_refusal sink_options_check(const struct option_values *values, struct sink_options *options,
                                     struct error *error);

#endif
