/*
 * The one table of settings: how each is read, and what a person is told about it (spec 3.1).
 */
#include "common/setting_table.h"

#include <string.h>

#include "common/nearest.h"
#include "common/settings_parse.h"

#define MB ((int64_t)1048576)
/* Thirty years: the upper end that the specification leaves open, and that no deadline overflows at. */
#define GRACE_MAX INT64_C(1000000000000)

#define AT(field)       .offset = offsetof(struct settings, field)
#define SPELLED(value)  #value
#define RANGE(from, to) "a whole number from " SPELLED(from) " to " SPELLED(to)
#define NUMBER(field, from, to, factor) \
    .take = take_number, AT(field), .least = (from), .most = (to), .unit = (factor), .expected = RANGE(from, to)

const struct setting_choice setting_starts[] = {{"latest", START_LATEST}, {"earliest", START_EARLIEST}, {NULL, 0}};
const struct setting_choice setting_crash_points[] = {{"never", CRASH_NEVER},
                                                      {"after_intent", CRASH_AFTER_INTENT},
                                                      {"mid_upload", CRASH_MID_UPLOAD},
                                                      {"after_upload", CRASH_AFTER_UPLOAD},
                                                      {"before_commit", CRASH_BEFORE_COMMIT},
                                                      {"after_commit", CRASH_AFTER_COMMIT},
                                                      {NULL, 0}};
static const struct setting_choice encryptions[] = {{"AES256", SSE_AES256}, {"aws:kms", SSE_KMS}, {NULL, 0}};
static const struct setting_choice log_formats[] = {{"human", 0}, {"json", 1}, {NULL, 0}};
static const struct setting_choice log_levels[] = {
    {"error", LOG_ERROR}, {"warn", LOG_WARN}, {"info", LOG_INFO}, {"debug", LOG_DEBUG}, {NULL, 0}};

static const char secret_text[] = "one line of text without control bytes (its value is not shown)";
static const char secret_in_file[] = "a readable file that holds the secret in one line";
static const char pem_file[] = "the path of a PEM file";

const struct setting_row setting_rows[] = {
    {.name = "QUEEN_URL",
     .take = take_url,
     .fallback = "http://localhost:6632",
     .expected = "an http(s) URL",
     .description = "The broker, or the proxy in front of it. A broker that starts the sink itself sets this to the "
                    "address that it listens on. Slashes at its end are dropped; a user and a password in it are sent, "
                    "and shown nowhere."},
    {.name = "QUEEN_TOKEN",
     .take = take_secret,
     AT(queen_token),
     .expected = secret_text,
     .flags = SETTING_SECRET,
     .description = "The bearer token of every call to the broker. A proxy wants of it the scope consume, and read on "
                    "top of that with QUEEN_S3_QUEUES=*; a broker with JWT_ENABLED=true wants the level read-write, "
                    "since commits are writes. Without it, calls carry no authorization."},
    {.name = "QUEEN_TOKEN_FILE",
     .take = take_secret_file,
     AT(queen_token),
     .expected = secret_in_file,
     .file_of = "QUEEN_TOKEN",
     .description =
         "A file that holds the token, as a service manager or a cluster hands out secrets. One line feed at "
         "its end is dropped. Beside QUEEN_TOKEN it is refused."},
    {.name = "QUEEN_CA_FILE",
     .take = take_readable_file,
     AT(queen_ca_file),
     .expected = pem_file,
     .initial = "the system's store",
     .description = "The certificates that the broker's own is verified against, where QUEEN_URL is https."},
    {.name = "QUEEN_S3_SINK",
     .take = take_sink,
     .fallback = "default",
     .expected = "1 to 64 characters of A-Z a-z 0-9 . _ -",
     .description =
         "The name under which the sink keeps what it has to remember in the broker: it is part of every key "
         "there. Sinks of different names mirror the same queue independently of each other, and must not "
         "share a bucket and a prefix. A sink that is renamed knows nothing of what it wrote before."},
    {.name = "QUEEN_S3_QUEUES",
     .take = take_queues,
     .expected = "a comma list of queues, or *",
     .flags = SETTING_REQUIRED,
     .description = "The queues to mirror, each named once; blanks around a name are dropped. With * all queues of the "
                    "broker are mirrored, and the broker is asked again every ten discovery intervals for new ones, "
                    "which begin at their first record. Not needed where QUEEN_S3_CONNECTORS is set."},
    {.name = "QUEEN_S3_PARTITIONS",
     .take = take_absent,
     .expected = "it unset: a static list of partitions has no safeTime, so no window could ever be closed; "
                 "they are discovered with POST /api/v1/partitions/changed",
     .accepted = "nothing",
     .flags = SETTING_REFUSED,
     .description = "Refused when it is set: partitions are discovered. A static list would have no watermark below "
                    "which nothing can come any more, and so no window could ever be closed."},
    {.name = "QUEEN_S3_ENDPOINT",
     .take = take_endpoint,
     .expected = "scheme://host[:port] (http or https), or file:///absolute/dir",
     .flags = SETTING_REQUIRED,
     .description = "Where the bucket is, without the bucket's name and without a path. With file: the bucket is a "
                    "folder in that directory, which holds the same keys as files; region and keys are not needed "
                    "then."},
    {.name = "QUEEN_S3_REGION",
     .take = take_word,
     AT(region),
     .expected = "a region's name, as eu-central-1",
     .flags = SETTING_REQUIRED,
     .description =
         "The region that requests are signed for. Stores that have no regions usually accept us-east-1. Not "
         "needed with a file: endpoint."},
    {.name = "QUEEN_S3_BUCKET",
     .take = take_bucket,
     .expected = "a bucket's name, without a slash or a blank",
     .flags = SETTING_REQUIRED,
     .description = "The bucket. It has to exist; with a file: endpoint it is a folder that is made."},
    {.name = "QUEEN_S3_PREFIX",
     .take = take_prefix,
     .fallback = "queen",
     .expected = "segments between single slashes, none of them empty, . or ..",
     .description =
         "What all keys begin with. Slashes at its beginning and end are dropped. Two sinks must never share "
         "a bucket and a prefix."},
    {.name = "QUEEN_S3_ACCESS_KEY",
     .take = take_word,
     AT(access_key),
     .expected = "an access key, one word (its value is not shown)",
     .flags = SETTING_REQUIRED | SETTING_SECRET,
     .description = "The id of the key pair that requests to the bucket are signed with. Not needed with a file: "
                    "endpoint. `queen-s3 policy` prints the least that the pair must be allowed."},
    {.name = "QUEEN_S3_SECRET_KEY",
     .take = take_secret,
     AT(secret_key),
     .expected = secret_text,
     .flags = SETTING_REQUIRED | SETTING_SECRET,
     .description = "The secret of the key pair. Both keys are set, or neither. It is shown nowhere."},
    {.name = "QUEEN_S3_SECRET_KEY_FILE",
     .take = take_secret_file,
     AT(secret_key),
     .expected = secret_in_file,
     .file_of = "QUEEN_S3_SECRET_KEY",
     .description =
         "A file that holds the secret key, in the place of QUEEN_S3_SECRET_KEY. One line feed at its end is "
         "dropped. Beside QUEEN_S3_SECRET_KEY it is refused."},
    {.name = "QUEEN_S3_PATH_STYLE",
     .take = take_switch,
     AT(path_style),
     .expected = "true, false, 1, 0, yes, no, on or off",
     .initial = "false",
     .description =
         "Puts the bucket's name into the path of requests instead of into the host's name. Gateways such as "
         "MinIO and versitygw want this."},
    {.name = "QUEEN_S3_SSE",
     .take = take_choice,
     AT(sse),
     .expected = "AES256 or aws:kms",
     .choices = encryptions,
     .description =
         "The encryption at rest that the bucket is asked for with every upload. What is in the lake is the "
         "plain log, also where the broker keeps the queue encrypted. Unset, the bucket's own default holds."},
    {.name = "QUEEN_S3_SSE_KMS_KEY_ID",
     .take = take_word,
     AT(sse_kms_key_id),
     .expected = "a KMS key's id, one word",
     .description = "The key that aws:kms encrypts with; unset, the account's default key. Beside anything but "
                    "QUEEN_S3_SSE=aws:kms it is refused. Only its last four characters are shown."},
    {.name = "QUEEN_S3_FORMAT",
     .take = take_format,
     .fallback = "jsonl",
     .expected = "jsonl or parquet",
     .description = "The form of the objects: JSON Lines, a record a line, or Parquet with five columns. A window that "
                    "was begun is finished in the format that it was begun with; a lake may hold both."},
    {.name = "QUEEN_S3_COMPRESSION",
     .take = take_compression,
     .fallback = "zstd",
     .expected = "zstd, gzip or none",
     .description = "How JSON Lines objects are compressed. It is checked, and has no effect, with "
                    "QUEEN_S3_FORMAT=parquet."},
    {.name = "QUEEN_S3_PARQUET_CODEC",
     .take = take_codec,
     .fallback = "zstd",
     .expected = "zstd or snappy",
     .description = "How the pages of Parquet objects are compressed. It is checked, and has no effect, with "
                    "QUEEN_S3_FORMAT=jsonl."},
    {.name = "QUEEN_S3_LAYOUT",
     .take = take_layout,
     .fallback = "merged",
     .expected = "merged or per-partition",
     .description =
         "One object a window with all partitions in it, or an object for each partition that has records in "
         "the window. The second makes many objects where there are many partitions."},
    {.name = "QUEEN_S3_ALIGN",
     .take = take_align,
     .fallback = "hour",
     .expected = "hour, day or none",
     .description = "No window crosses a full hour or a day (of UTC), so that the folders of a lake hold what their "
                    "names say. With none a window lies in the folder of its beginning, and may reach past its end."},
    {.name = "QUEEN_S3_START",
     .take = take_choice,
     AT(start),
     .fallback = "latest",
     .expected = "latest or earliest",
     .choices = setting_starts,
     .description = "Where a queue begins that this sink has never mirrored: at the present, or at the first record "
                    "that the broker still holds. Once something was committed it has no effect."},
    {.name = "QUEEN_S3_TARGET_MB",
     NUMBER(target_bytes, 1, 5120, MB),
     .fallback = "128",
     .description = "A window closes when its records weigh this many MiB, uncompressed. Records of one ts are never "
                    "split, whatever they weigh."},
    {.name = "QUEEN_S3_MAX_WINDOW_MS",
     NUMBER(max_window_ms, 100, 86400000, 1),
     .fallback = "300000",
     .description = "A window closes when it spans this much time on the broker's clock. It is how far the lake lags "
                    "behind a quiet queue. A queue that falls behind by more than three times as much (at least 30 s) "
                    "turns /healthz red."},
    {.name = "QUEEN_S3_CHECKPOINT_EVERY",
     NUMBER(checkpoint_every, 1, 100000, 1),
     .fallback = "20",
     .description =
         "After this many windows the position of each partition is written into the bucket. A restart reads "
         "it to find its place sooner; without it the positions are sought in the log."},
    {.name = "QUEEN_S3_MEMORY_MB",
     NUMBER(memory_bytes, 1, 1048576, MB),
     .fallback = "1024",
     .description =
         "The memory, in MiB, of the supervisor and all workers together. At least 32 and 16 for each worker; "
         "below 256 the broker's largest answer does not fit, and the budget is not held when it comes. When "
         "it is used up, the queue with the most in its buffer closes its window early."},
    {.name = "QUEEN_S3_FETCH_CONCURRENCY",
     NUMBER(fetch_concurrency, 1, 256, 1),
     .fallback = "4",
     .description = "How many calls for records of one queue are under way at a time."},
    {.name = "QUEEN_S3_DISCOVERY_INTERVAL_MS",
     NUMBER(discovery_interval_ms, 10, 3600000, 1),
     .fallback = "2000",
     .description = "How often the broker is asked which partitions have changed, and for the watermark up to which "
                    "windows may close. Also, times ten, how often it is asked for new queues with "
                    "QUEEN_S3_QUEUES=*."},
    {.name = "QUEEN_S3_SAFE_GUARD_MS",
     NUMBER(safe_guard_ms, 0, 3600000, 1),
     .fallback = "5000",
     .description = "How far windows stay below the broker's watermark. It allows for clocks of several brokers that "
                    "differ a little."},
    {.name = "QUEEN_S3_LEASE_TTL_MS",
     NUMBER(lease_ttl_ms, 1000, 3600000, 1),
     .fallback = "30000",
     .description = "How long the lease on a queue outlives an instance that died, and so how long another one waits "
                    "before it takes over. The lease is renewed every third of it. Whole seconds count, rounded "
                    "down."},
    {.name = "QUEEN_S3_MULTIPART_THRESHOLD_MB",
     NUMBER(multipart_threshold_bytes, 5, 5120, MB),
     .fallback = "64",
     .description = "An object that is larger than this many MiB goes up in parts of 16 MiB, while it is still being "
                    "compressed. It is lowered to an eighth of a worker's memory where it is more than that."},
    {.name = "QUEEN_S3_LISTEN",
     .take = take_listen,
     .fallback = "127.0.0.1:9333",
     .expected = "host:port, an IPv6 address in brackets, the port from 0 to 65535",
     .description =
         "Where /healthz and /metrics are served, and / as a page for a browser. With port 0 the system picks one, which the log names. To be "
         "scraped from another machine it has to be as wide as 0.0.0.0:9333."},
    {.name = "QUEEN_S3_INSTANCE",
     .take = take_text,
     AT(instance),
     .expected = "this instance's name",
     .initial = "the hostname",
     .description = "The name under which this instance holds its leases: what another one logs when it finds a queue "
                    "taken. Where there is no hostname, one is made up."},
    {.name = "QUEEN_S3_WORKERS",
     NUMBER(workers, 1, SETTING_WORKERS_MAX, 1),
     .initial = "min(cores, queues)",
     .description = "How many worker processes the queues are shared among; never more than there are queues. With "
                    "QUEEN_S3_QUEUES=* their number grows up to it as queues appear. Each needs 16 MiB of "
                    "QUEEN_S3_MEMORY_MB."},
    {.name = "QUEEN_S3_CRASH_AT",
     .take = take_choice,
     AT(crash_at),
     .fallback = "never",
     .expected = "never, after_intent, mid_upload, after_upload, before_commit or after_commit",
     .choices = setting_crash_points,
     .description =
         "For tests of recovery alone: the first window that reaches this step of a commit ends all processes "
         "with SIGKILL, as a power cut would."},
    {.name = "QUEEN_S3_LOG_FORMAT",
     .take = take_switch,
     AT(log_json),
     .fallback = "human",
     .expected = "human or json",
     .choices = log_formats,
     .description = "Log lines for people, or one JSON object each."},
    {.name = "RUST_LOG",
     .take = take_rust_log,
     .fallback = "",
     .initial = "info",
     .expected = "levels and target=level, between commas",
     .flags = SETTING_SHARED,
     .description =
         "Read where QUEEN_S3_LOG_LEVEL is unset: debug, or queen_s3=debug among others, as the other programs "
         "of a Queen installation understand it. What in it is about other programs is passed over."},
    {.name = "QUEEN_S3_LOG_LEVEL",
     .take = take_choice,
     AT(log_level),
     .initial = "info",
     .expected = "error, warn, info or debug",
     .choices = log_levels,
     .description = "The least urgent lines that are logged. The boot line is written at any level."},
    {.name = "QUEEN_S3_SHUTDOWN_GRACE_MS",
     .take = take_number,
     AT(shutdown_grace_ms),
     .fallback = "30000",
     .expected = "a whole number from 100 to 1000000000000",
     .least = 100,
     .most = GRACE_MAX,
     .unit = 1,
     .description = "How long a stop may take to finish the windows that are worth it. A second before its end the "
                    "workers are killed; the next start builds such a window again, byte for byte. A broker that "
                    "starts the sink reads it too."},
    {.name = "QUEEN_S3_CONTROL",
     .take = take_control,
     AT(control),
     .expected = "an absolute path, or off",
     .initial = "/run/queen-s3/<sink>.sock, else $XDG_RUNTIME_DIR/queen-s3-<sink>.sock",
     .description = "The Unix socket that `queen-s3 status` asks. Where neither of the two default folders can be "
                    "written there is none; a path that is given and can't be had ends the start."},
    {.name = "QUEEN_S3_CONNECTORS",
     .take = take_text,
     AT(connectors),
     .expected = "a folder of connector definitions",
     .description =
         "A folder of connector definitions in TOML, which run beside the queues. With it QUEEN_S3_QUEUES may "
         "be unset."},
    {.name = "QUEEN_S3_CA_FILE",
     .take = take_readable_file,
     AT(ca_file),
     .expected = pem_file,
     .initial = "the system's store",
     .description = "The certificates that the bucket's own is verified against, where QUEEN_S3_ENDPOINT is https."},
    {.name = "QUEEN_S3_EMBEDDED",
     .accepted = "anything",
     .flags = SETTING_BROKERS,
     .description = "With true, a broker starts the sink as its child. Read by the broker alone; accepted here so that "
                    "both can share one environment file."},
    {.name = "QUEEN_S3_BIN",
     .accepted = "anything",
     .initial = "queen-s3 beside the broker's own program",
     .flags = SETTING_BROKERS,
     .description = "The program that a broker starts with QUEEN_S3_EMBEDDED=true. Read by the broker alone."},
};

const size_t setting_row_count = sizeof setting_rows / sizeof *setting_rows;

bool setting_at(size_t index, struct setting *setting)
{
    if (index >= setting_row_count) {
        return false;
    }
    const struct setting_row *row = &setting_rows[index];
    *setting = (struct setting){.name = row->name,
                                .initial = row->initial != NULL ? row->initial : row->fallback,
                                .accepted = row->accepted != NULL ? row->accepted : row->expected,
                                .description = row->description,
                                .file_of = row->file_of,
                                .flags = row->flags};
    return true;
}

bool setting_find(const char *name, struct setting *setting)
{
    for (size_t i = 0; setting_at(i, setting); i++) {
        if (strcmp(setting->name, name) == 0) {
            return true;
        }
    }
    return false;
}

const char *setting_nearest(const char *name)
{
    struct nearest nearest;

    nearest_begin(&nearest, name);
    for (size_t i = 0; i < setting_row_count; i++) {
        if ((setting_rows[i].flags & SETTING_REFUSED) == 0) {
            nearest_offer(&nearest, setting_rows[i].name);
        }
    }
    return nearest.name;
}
