/* What the values of [plugin_config] mean together: options.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/settings_parse.h"
#include "worker/connector/options_internal.h"

#define DEFAULT_TEMPLATE    "{topic}/{date}/{hour}"
#define DEFAULT_FILE_SIZE   (UINT64_C(8) << 20)
#define DEFAULT_ATTEMPTS    3
#define DEFAULT_RETRY_DELAY 1000
#define SHOWN_MAX           120

typedef enum sink_refusal check(const struct option_values *values, struct sink_options *options, struct error *error);

static bool is_empty(const char *text)
{
    return text == NULL || text[0] == '\0';
}

static enum sink_refusal check_required(const struct option_values *values, struct sink_options *options,
                                        struct error *error)
{
    bool directory = values->endpoint != NULL && strncmp(values->endpoint, "file:", 5) == 0;

    (void)options;
    if (values->bucket == NULL) {
        error_set(error, QS_ERROR_INPUT, "plugin_config has no bucket: bucket and region are required");
        return SINK_UNREADABLE;
    }
    if (values->region == NULL && !directory) {
        error_set(error, QS_ERROR_INPUT, "plugin_config has no region: bucket and region are required");
        return SINK_UNREADABLE;
    }
    if (values->max_attempts.given && values->max_retries.given) {
        error_set(error, QS_ERROR_INPUT,
                  "Invalid config value: max_attempts and max_retries are one setting: give one of them");
        return SINK_UNREADABLE;
    }
    return SINK_ACCEPTED;
}

static enum sink_refusal check_bucket(const struct option_values *values, struct sink_options *options,
                                      struct error *error)
{
    if (values->bucket[0] == '\0') {
        error_set(error, QS_ERROR_INPUT, "Invalid config value: bucket must not be empty");
        return SINK_REFUSED;
    }
    bool odd = strcmp(values->bucket, ".") == 0 || strcmp(values->bucket, "..") == 0;
    for (const char *at = values->bucket; *at != '\0'; at++) {
        odd = odd || (unsigned char)*at <= ' ' || *at == '/' || *at == 0x7f;
    }
    if (odd) {
        error_set(error, QS_ERROR_INPUT, "Invalid config value: bucket '%.*s': expected a name without slash or blank",
                  SHOWN_MAX, values->bucket);
        return SINK_REFUSED;
    }
    options->store.bucket = memory_copy_text(values->bucket);
    return SINK_ACCEPTED;
}

/* `eu-central-1`, `us-gov-west-1`, `us-iso-east-1`, `eusc-de-east-1`: words of small letters and a number. */
static bool is_region_shape(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    size_t first = strspn(text, letters);
    size_t words = 0;

    if (first < 2 || first > 4) {
        return false;
    }
    for (text += first; *text == '-' && strspn(text + 1, letters) > 0; words++) {
        text += 1 + strspn(text + 1, letters);
    }
    size_t digits = *text == '-' ? strspn(text + 1, "0123456789") : 0;
    return words >= 1 && words <= 3 && digits >= 1 && digits <= 2 && text[1 + digits] == '\0';
}

char *sink_aws_endpoint(const char *service, const char *region)
{
    static const struct {
        const char *region;
        const char *domain;
    } partitions[] = {{"cn-", "amazonaws.com.cn"},   {"eusc-", "amazonaws.eu"},      {"us-iso-", "c2s.ic.gov"},
                      {"us-isob-", "sc2s.sgov.gov"}, {"us-isof-", "csp.hci.ic.gov"}, {"eu-isoe-", "cloud.adc-e.uk"}};
    const char *domain = "amazonaws.com";

    for (size_t i = 0; i < sizeof partitions / sizeof *partitions; i++) {
        if (strncmp(region, partitions[i].region, strlen(partitions[i].region)) == 0) {
            domain = partitions[i].domain;
        }
    }
    return memory_format("https://%s.%s.%s", service, region, domain);
}

static enum sink_refusal check_region(const struct option_values *values, struct sink_options *options,
                                      struct error *error)
{
    if (values->region == NULL) {
        return SINK_ACCEPTED;
    }
    bool plain = values->region[0] != '\0';
    for (const char *at = values->region; *at != '\0'; at++) {
        plain = plain && (unsigned char)*at > ' ' && (unsigned char)*at < 0x7f && *at != '/';
    }
    if (values->region[0] == '\0') {
        error_set(error, QS_ERROR_INPUT, "Invalid config value: region must not be empty");
        return SINK_REFUSED;
    }
    if (!plain || (values->endpoint == NULL && !is_region_shape(values->region))) {
        error_set(error, QS_ERROR_INPUT,
                  "Invalid config value: Invalid S3 region '%.*s': expected a name such as eu-central-1, or any label "
                  "with endpoint set",
                  SHOWN_MAX, values->region);
        return SINK_REFUSED;
    }
    options->store.region = memory_copy_text(values->region);
    return SINK_ACCEPTED;
}

static enum sink_refusal check_endpoint(const struct option_values *values, struct sink_options *options,
                                        struct error *error)
{
    static const struct setting_row row = {.name = "Invalid config value: endpoint",
                                           .expected = "http://host[:port], https://host[:port] or file:///dir"};

    if (values->endpoint == NULL) {
        options->store.endpoint = sink_aws_endpoint("s3", options->store.region);
        /* No certificate of AWS covers a name with further dots in it. */
        options->store.path_style = strchr(options->store.bucket, '.') != NULL;
    } else {
        if (take_endpoint(&row, values->endpoint, &options->store, error) != 0) {
            return SINK_REFUSED;
        }
        options->store.path_style = true;
    }
    if (values->path_style.given) {
        options->store.path_style = values->path_style.value == 1;
    }
    const char *ca_file = getenv("AWS_CA_BUNDLE");
    options->store.ca_file = is_empty(ca_file) ? NULL : memory_copy_text(ca_file);
    return SINK_ACCEPTED;
}

static enum sink_refusal check_credentials(const struct option_values *values, struct sink_options *options,
                                           struct error *error)
{
    if (is_empty(values->access_key_id) != is_empty(values->secret_access_key)) {
        error_set(error, QS_ERROR_INPUT,
                  "Invalid config value: Partially configured credentials. You must provide both access_key_id and "
                  "secret_access_key, or omit both.");
        return SINK_REFUSED;
    }
    if (!is_empty(values->access_key_id)) {
        options->store.access_key = memory_copy_text(values->access_key_id);
        options->store.secret_key = memory_copy_text(values->secret_access_key);
    }
    return SINK_ACCEPTED;
}

static enum sink_refusal check_paths(const struct option_values *values, struct sink_options *options,
                                     struct error *error)
{
    const char *template = values->path_template != NULL ? values->path_template : DEFAULT_TEMPLATE;
    const char *prefix = values->prefix != NULL ? values->prefix : "";

    if (template[0] == '\0') {
        error_set(error, QS_ERROR_INPUT, "Invalid config value: path_template must not be empty");
        return SINK_REFUSED;
    }
    if (path_template_check(template, error) != 0) {
        error_prefix(error, "Invalid config value");
        return SINK_REFUSED;
    }
    options->path_template = memory_copy_text(template);
    prefix += strspn(prefix, "/");
    size_t size = strlen(prefix);
    while (size > 0 && prefix[size - 1] == '/') {
        size--;
    }
    if (size > SINK_KEY_MAX / 2 || strlen(template) > SINK_KEY_MAX) {
        error_set(error, QS_ERROR_INPUT,
                  "Invalid config value: prefix of %zu and path_template of %zu bytes: expected at most %d and %d",
                  size, strlen(template), SINK_KEY_MAX / 2, SINK_KEY_MAX);
        return SINK_REFUSED;
    }
    options->store.prefix = size > 0 ? memory_copy(prefix, size) : NULL;
    return SINK_ACCEPTED;
}

static enum sink_refusal check_shape(const struct option_values *values, struct sink_options *options,
                                     struct error *error)
{
    (void)error;
    options->shape = (struct sink_shape){
        .format = values->output_format.name != NULL ? (enum sink_format)values->output_format.value : SINK_JSON_LINES,
        .compression =
            values->compression.name != NULL ? (enum setting_compression)values->compression.value : COMPRESSION_NONE,
        .include_metadata = !values->include_metadata.given || values->include_metadata.value == 1,
        .include_headers = values->include_headers.given && values->include_headers.value == 1};
    return SINK_ACCEPTED;
}

static enum sink_refusal check_limits(const struct option_values *values, struct sink_options *options,
                                      struct error *error)
{
    struct sink_limits *limits = &options->limits;

    limits->rotation =
        values->file_rotation.name != NULL ? (enum sink_rotation)values->file_rotation.value : SINK_BY_SIZE;
    limits->max_size = values->max_file_size.given ? values->max_file_size.value : DEFAULT_FILE_SIZE;
    limits->max_messages = values->max_messages_per_file.value;
    if (limits->max_size == 0) {
        error_set(error, QS_ERROR_INPUT, "Invalid config value: max_file_size must be greater than 0");
        return SINK_REFUSED;
    }
    if (limits->max_size > SINK_OBJECT_MAX) {
        char number[24];
        snprintf(number, sizeof number, "%" PRIu64, limits->max_size);
        error_set(error, QS_ERROR_INPUT,
                  "Invalid config value: max_file_size (%.*s) exceeds S3 single PutObject limit of 5 GiB", SHOWN_MAX,
                  values->max_file_size.text != NULL ? values->max_file_size.text : number);
        return SINK_REFUSED;
    }
    if (values->max_messages_per_file.given && limits->max_messages == 0) {
        error_set(error, QS_ERROR_INPUT, "Invalid config value: max_messages_per_file must be greater than 0");
        return SINK_REFUSED;
    }
    if (limits->rotation == SINK_BY_MESSAGES && !values->max_messages_per_file.given) {
        error_set(error, QS_ERROR_INPUT,
                  "Invalid config value: file_rotation is 'messages' but max_messages_per_file is not configured");
        return SINK_REFUSED;
    }
    return SINK_ACCEPTED;
}

static enum sink_refusal check_upload(const struct option_values *values, struct sink_options *options,
                                      struct error *error)
{
    uint64_t attempts = values->max_attempts.given  ? values->max_attempts.value
                        : values->max_retries.given ? values->max_retries.value
                                                    : DEFAULT_ATTEMPTS;

    options->max_attempts = attempts > 0 ? (uint32_t)attempts : 1;
    options->retry_delay_ms = values->retry_delay.given ? (int64_t)values->retry_delay.value : DEFAULT_RETRY_DELAY;
    options->max_file_age_ms = (int64_t)values->max_file_age.value;
    if (values->max_file_age.given && values->max_file_age.value == 0) {
        error_set(error, QS_ERROR_INPUT,
                  "Invalid config value: max_file_age must be greater than 0 (leave it out for none)");
        return SINK_REFUSED;
    }
    return SINK_ACCEPTED;
}

static enum sink_refusal check_durability(const struct option_values *values, struct sink_options *options,
                                          struct error *error)
{
    options->durability_given = values->durability.name != NULL;
    options->spool_dir_given = values->spool_dir != NULL;
    options->durability = options->durability_given ? (enum sink_durability)values->durability.value : SINK_BUFFERED;
    if (options->durability != SINK_SPOOLED && options->spool_dir_given) {
        error_set(error, QS_ERROR_INPUT, "Invalid config value: spool_dir is for durability 'spooled' only");
        return SINK_REFUSED;
    }
    if (options->durability == SINK_SPOOLED && (is_empty(values->spool_dir) || values->spool_dir[0] != '/')) {
        error_set(error, QS_ERROR_INPUT,
                  "Invalid config value: durability is 'spooled' but spool_dir is not an absolute path");
        return SINK_REFUSED;
    }
    options->spool_dir = memory_copy_text(values->spool_dir);
    return SINK_ACCEPTED;
}

enum sink_refusal sink_options_check(const struct option_values *values, struct sink_options *options,
                                     struct error *error)
{
    static check *const checks[] = {check_required, check_bucket, check_region, check_endpoint, check_credentials,
                                    check_paths,    check_shape,  check_limits, check_upload,   check_durability};
    enum sink_refusal refusal = SINK_ACCEPTED;

    for (size_t i = 0; i < sizeof checks / sizeof *checks && refusal == SINK_ACCEPTED; i++) {
        refusal = checks[i](values, options, error);
    }
    return refusal;
}
