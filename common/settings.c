/*
 * Every setting, read row by row of setting_table.c, and what they have to be to each other.
 */
#include "common/settings.h"

#include <ctype.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/memory.h"
#include "common/settings_parse.h"
#include "common/utf8.h"

#define MB ((int64_t)1048576)

static bool is_blank(const char *text)
{
    while (isspace((unsigned char)*text)) {
        text++;
    }
    return *text == '\0';
}

/* The value without the blanks around it; a secret loses only the line feed that a file or a template left on it. */
static char *copy_value(const char *value, bool secret)
{
    size_t size = strlen(value);

    if (secret) {
        return memory_copy(value, size > 0 && value[size - 1] == '\n' ? size - 1 : size);
    }
    while (isspace((unsigned char)*value)) {
        value++;
    }
    size = strlen(value);
    while (size > 0 && isspace((unsigned char)value[size - 1])) {
        size--;
    }
    return memory_copy(value, size);
}

/* Names go into JSON and into keys, and everything goes into lines. A secret goes nowhere but into a header. DEL is a
 * control byte that a broker takes into a queue's name (spec 1.2). */
static int check_bytes(const struct setting_row *row, const char *text, struct error *error)
{
    struct setting_row told = *row;
    size_t size;

    told.expected = "UTF-8 text without control bytes";
    for (const char *at = text; *at != '\0'; at += size) {
        size = utf8_next(at);
        if (size == 0 || (unsigned char)*at < 0x20 || (*at == 0x7F && row->take != take_queues)) {
            return setting_refuse(&told, text, error);
        }
    }
    return 0;
}

static int read_row(const struct setting_row *row, const char *value, struct settings *settings, struct error *error)
{
    bool secret = (row->flags & SETTING_SECRET) != 0;
    bool free_form = secret || (row->flags & SETTING_SHARED) != 0;

    if (row->take == NULL) {
        return 0;
    }
    if (value == NULL || is_blank(value)) {
        return row->fallback != NULL ? row->take(row, row->fallback, settings, error) : 0;
    }
    char *text = copy_value(value, secret);
    int code = free_form ? 0 : check_bytes(row, text, error);

    if (code == 0) {
        code = row->take(row, text, settings, error);
    }
    memory_free_secret(text);
    return code;
}

static int require(bool there, const char *name, const char *what, struct error *error)
{
    return there ? 0 : error_set(error, QS_ERROR_INPUT, "%s is not set: expected %s", name, what);
}

static int check_keys(const struct settings *settings, enum setting_need need, struct error *error)
{
    bool optional = settings->file_root != NULL || need == SETTING_NEED_PLACE;
    bool has_access = settings->access_key != NULL;
    bool has_secret = settings->secret_key != NULL;
    int code = require(has_access || (optional && !has_secret), "QUEEN_S3_ACCESS_KEY",
                       has_secret ? "it beside QUEEN_S3_SECRET_KEY: both keys or neither" : "an access key", error);

    if (code == 0) {
        code = require(has_secret || (optional && !has_access), "QUEEN_S3_SECRET_KEY",
                       has_access ? "it (or QUEEN_S3_SECRET_KEY_FILE) beside QUEEN_S3_ACCESS_KEY: both keys or neither"
                                  : "a secret key, or QUEEN_S3_SECRET_KEY_FILE",
                       error);
    }
    return code;
}

static int check_required(const struct settings *settings, enum setting_need need, struct error *error)
{
    bool file = settings->file_root != NULL;
    bool some_queues = settings->all_queues || settings->queue_count > 0 || settings->connectors != NULL;
    int code =
        require(some_queues || need != SETTING_NEED_ALL, "QUEEN_S3_QUEUES", "a comma list of queues, or *", error);

    if (code == 0) {
        code = require(settings->endpoint != NULL, "QUEEN_S3_ENDPOINT", "scheme://host[:port], or file:///absolute/dir",
                       error);
    }
    if (code == 0) {
        code =
            require(settings->region != NULL || file, "QUEEN_S3_REGION", "the bucket's region, as eu-central-1", error);
    }
    if (code == 0) {
        code = require(settings->bucket != NULL, "QUEEN_S3_BUCKET", "a bucket's name", error);
    }
    return code == 0 ? check_keys(settings, need, error) : code;
}

static int check_encryption(const struct settings *settings, struct error *error)
{
    if (settings->sse_kms_key_id == NULL || settings->sse == SSE_KMS) {
        return 0;
    }
    return error_set(error, QS_ERROR_INPUT,
                     "QUEEN_S3_SSE_KMS_KEY_ID=%.200s: expected it only with QUEEN_S3_SSE=aws:kms, which is %s",
                     settings->sse_kms_key_id, settings->sse == SSE_AES256 ? "AES256" : "unset");
}

/* The processors that this process may run on: a container's share, not the machine. */
static int64_t count_cores(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) {
        return CPU_COUNT(&set);
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? online : 1;
}

/* No more of them than there are queues; connectors without queues still need one. */
static int64_t limit_workers(const struct settings *settings, int64_t workers)
{
    int64_t most = settings->all_queues ? SETTING_WORKERS_MAX : (int64_t)settings->queue_count;

    if (most < 1) {
        most = 1;
    }
    return workers < most ? workers : most;
}

/* The hostname, or something that no other instance is called. */
static void fill_instance(struct settings *settings)
{
    char name[256] = "";
    uint64_t number = 0;

    if (settings->instance != NULL) {
        return;
    }
    if (gethostname(name, sizeof name - 1) == 0 && !is_blank(name)) {
        settings->instance = memory_copy_text(name);
        return;
    }
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
        number = (uint64_t)getpid();
    }
    settings->instance = memory_format("queen-s3-%016llx", (unsigned long long)number);
    settings->instance_generated = true;
}

/* The value of this variable was refused: where does it stand? */
static int blame(const struct settings_source *source, const char *name, int code, struct error *error)
{
    if (code != 0 && source->blame != NULL) {
        source->blame(source->argument, name, error);
    }
    return code;
}

static int read_rows(const struct settings_source *source, enum setting_need need, struct settings *settings,
                     struct error *error)
{
    int code = 0;

    for (size_t i = 0; i < setting_row_count && code == 0; i++) {
        const struct setting_row *row = &setting_rows[i];
        if (need == SETTING_NEED_CONTROL && row->take != take_sink && row->take != take_control) {
            continue;
        }
        code = read_row(row, source->lookup(source->argument, row->name), settings, error);
        code = blame(source, row->name, code, error);
    }
    return code;
}

static int read_all(const struct settings_source *source, enum setting_need need, struct settings *settings,
                    struct error *error)
{
    int code = read_rows(source, need, settings, error);

    if (need == SETTING_NEED_CONTROL) {
        return code;
    }
    if (code == 0 && need != SETTING_NEED_NOTHING) {
        code = check_required(settings, need, error);
    }
    if (code == 0) {
        code = blame(source, "QUEEN_S3_SSE_KMS_KEY_ID", check_encryption(settings, error), error);
    }
    if (code != 0) {
        return code;
    }
    fill_instance(settings);
    if (settings->workers == 0) {
        int64_t cores = count_cores();
        settings->workers = limit_workers(settings, cores < SETTING_WORKERS_MAX ? cores : SETTING_WORKERS_MAX);
    }
    if (need == SETTING_NEED_ALL) {
        code = settings_check_memory(settings, (size_t)limit_workers(settings, settings->workers), error);
    }
    return blame(source, "QUEEN_S3_MEMORY_MB", code, error);
}

int settings_read_from(const struct settings_source *source, enum setting_need need, struct settings *settings,
                       struct error *error)
{
    *settings = (struct settings){0};
    int code = read_all(source, need, settings, error);

    if (code != 0) {
        settings_free(settings);
    }
    return code;
}

int settings_read(settings_lookup *lookup, void *argument, struct settings *settings, struct error *error)
{
    const struct settings_source source = {lookup, NULL, argument};

    return settings_read_from(&source, SETTING_NEED_ALL, settings, error);
}

int settings_read_bucket(settings_lookup *lookup, void *argument, bool keys, struct settings *settings,
                         struct error *error)
{
    const struct settings_source source = {lookup, NULL, argument};

    return settings_read_from(&source, keys ? SETTING_NEED_BUCKET : SETTING_NEED_PLACE, settings, error);
}

size_t settings_queue_workers(const struct settings *settings)
{
    size_t workers = (size_t)settings->workers;

    return settings->all_queues || workers < settings->queue_count ? workers : settings->queue_count;
}

int settings_check_memory(const struct settings *settings, size_t workers, struct error *error)
{
    int64_t needed = SETTINGS_LEAST_BYTES + SETTINGS_WORKER_BYTES * (int64_t)workers;

    if (settings->memory_bytes >= needed) {
        return 0;
    }
    return error_set(error, QS_ERROR_INPUT,
                     "QUEEN_S3_MEMORY_MB=%lld: expected at least %lld for %zu worker%s (%lld, and %lld a worker; "
                     "QUEEN_S3_WORKERS sets how many)",
                     (long long)(settings->memory_bytes / MB), (long long)(needed / MB), workers,
                     workers == 1 ? "" : "s", (long long)(SETTINGS_LEAST_BYTES / MB),
                     (long long)(SETTINGS_WORKER_BYTES / MB));
}

void settings_free(struct settings *settings)
{
    for (size_t i = 0; i < settings->queue_count; i++) {
        free(settings->queues[i]);
    }
    free(settings->queues);
    free(settings->queen_url);
    memory_free_secret(settings->queen_token);
    free(settings->queen_ca_file);
    free(settings->sink);
    free(settings->endpoint);
    free(settings->file_root);
    free(settings->region);
    free(settings->bucket);
    free(settings->prefix);
    memory_free_secret(settings->access_key);
    memory_free_secret(settings->secret_key);
    free(settings->sse_kms_key_id);
    free(settings->listen_host);
    free(settings->listen_port);
    free(settings->instance);
    free(settings->control);
    free(settings->connectors);
    free(settings->ca_file);
    *settings = (struct settings){0};
}
