/*
 * Every setting (spec 3.1), read from the environment and a configuration file, checked whole.
 */
#ifndef COMMON_SETTINGS_H
#define COMMON_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/log.h"

enum setting_format { FORMAT_JSONL, FORMAT_PARQUET };
#define FORMAT_COUNT (FORMAT_PARQUET + 1)
enum setting_compression { COMPRESSION_ZSTD, COMPRESSION_GZIP, COMPRESSION_NONE, COMPRESSION_SNAPPY };
enum setting_layout { LAYOUT_MERGED, LAYOUT_PER_PARTITION };
enum setting_align { ALIGN_HOUR, ALIGN_DAY, ALIGN_NONE };
enum setting_start { START_LATEST, START_EARLIEST };
enum setting_sse { SSE_OFF, SSE_AES256, SSE_KMS };
enum crash_point {
    CRASH_NEVER,
    CRASH_AFTER_INTENT,
    CRASH_MID_UPLOAD,
    CRASH_AFTER_UPLOAD,
    CRASH_BEFORE_COMMIT,
    CRASH_AFTER_COMMIT
};

struct settings {
    char *queen_url;   /* without a trailing slash */
    char *queen_token; /* NULL: none */
    char *queen_ca_file;
    char *sink;
    char **queues; /* NULL where `*` */
    size_t queue_count;
    bool all_queues; /* `*` */
    char *endpoint;  /* scheme://host[:port], or file:///dir */
    char *file_root; /* the absolute directory of a file: endpoint, else NULL */
    char *region;    /* NULL with file: and not given */
    char *bucket;
    char *prefix;
    char *access_key;
    char *secret_key;
    bool path_style;
    enum setting_sse sse;
    char *sse_kms_key_id;
    enum setting_format format;
    enum setting_compression compression; /* jsonl: zstd gzip none; parquet: zstd snappy (from PARQUET_CODEC) */
    enum setting_layout layout;
    enum setting_align align;
    enum setting_start start;
    int64_t target_bytes;
    int64_t max_window_ms;
    int64_t checkpoint_every;
    int64_t memory_bytes;
    int64_t fetch_concurrency;
    int64_t discovery_interval_ms;
    int64_t safe_guard_ms;
    int64_t lease_ttl_ms;
    int64_t multipart_threshold_bytes;
    char *listen_host; /* without brackets */
    char *listen_port;
    char *instance;
    bool instance_generated;
    int64_t workers; /* as configured or by default: min(cores, queues); with `*`: min(cores, 1024) */
    enum crash_point crash_at;
    bool log_json;
    enum log_level log_level;
    int64_t shutdown_grace_ms;
    char *control; /* NULL: the default of spec 4.3; "off" */
    char *connectors;
    char *ca_file;
};

/* The settings of a process: from its environment and, where file isn't NULL, a configuration file (settings_file.h).
 * What the environment sets wins over the file; empty or blank is unset. 0; or QS_ERROR_INPUT with the one line of 3.1:
 * variable, value (never a secret's), what is accepted, and before it FILE:LINE where the value stands in the file; or
 * QS_ERROR_SYSTEM where the file can't be read. Owned by the caller: settings_free(). Nothing to free after an error. */
int settings_load(const char *file, struct settings *settings, struct error *error);
/* For commands that know no broker: what is set is checked as above, but only what names the bucket has to be set:
 * endpoint, bucket, and without file: the region, and the keys where `keys` says so. */
int settings_load_bucket(const char *file, bool keys, struct settings *settings, struct error *error);
/* For who only asks a running pool: sink and control are read, and nothing else is looked at. */
int settings_load_control(const char *file, struct settings *settings, struct error *error);

/* For connectors, which bring their own broker and bucket: what is set is checked, and nothing has to be. */
int settings_load_connect(const char *file, struct settings *settings, struct error *error);

/* Tells of each variable of the environment that begins with QUEEN_S3_ and that nobody knows: its name (gone after the
 * call), and the setting that was meant, NULL where none is near. A service of a Kubernetes cluster that is called
 * queen-s3 makes such variables: of those it doesn't tell. */
typedef void settings_unknown(void *argument, const char *name, const char *meant);
void settings_tell_unknown(settings_unknown *tell, void *argument);

/* The same of a getenv-like lookup, so that tests can stand in for the environment. */
typedef const char *settings_lookup(void *argument, const char *name);
int settings_read(settings_lookup *lookup, void *argument, struct settings *settings, struct error *error);
int settings_read_bucket(settings_lookup *lookup, void *argument, bool keys, struct settings *settings,
                         struct error *error);
/* Whether the bucket is at Amazon itself, in any of its partitions. */
bool settings_at_amazon(const struct settings *settings);
/* How many workers the queues have at most: none without queues. */
size_t settings_queue_workers(const struct settings *settings);

/* The least of QUEEN_S3_MEMORY_MB that a pool can work with (spec 4.1): this much, and so much more a worker. What a worker
 * takes by itself is measured: a proportional set size of 4.5 MB with one small queue and a directory as the bucket; the
 * rest is for what comes on top, its TLS and CA store, compression contexts, partitions and positions. To be measured
 * again under load. */
#define SETTINGS_LEAST_BYTES  ((int64_t)32 << 20)
#define SETTINGS_WORKER_BYTES ((int64_t)16 << 20)
/* 0, or QS_ERROR_INPUT with the line of 3.1. What is loaded above has it for its queues' workers; asked again where there
 * are others. */
int settings_check_memory(const struct settings *settings, size_t workers, struct error *error);
void settings_free(struct settings *settings);

/* The boot line of 3.1, without a line feed; malloc. Without a bucket, that of a pool of connectors alone. */
char *settings_boot_line(const struct settings *settings);

/* As the environment spells them. */
const char *setting_format_name(enum setting_format format);
const char *setting_compression_name(enum setting_compression compression);
const char *setting_layout_name(enum setting_layout layout);
const char *setting_align_name(enum setting_align align);
/* And back: false for anything else. Case is ignored. */
bool setting_format_parse(const char *text, enum setting_format *out);
bool setting_compression_parse(const char *text, enum setting_compression *out);
bool setting_layout_parse(const char *text, enum setting_layout *out);
bool setting_align_parse(const char *text, enum setting_align *out);

#define QUEEN_S3_VERSION "1.5.0"

#endif
