/* What the sources of credentials answer: credentials.h. */
#include <stdlib.h>
#include <string.h>

#include "common/json_walk.h"
#include "common/memory.h"
#include "common/s3_xml.h"
#include "worker/connector/credentials.h"

void sink_credentials_free(struct sink_credentials *credentials)
{
    memory_free_secret(credentials->access_key);
    memory_free_secret(credentials->secret_key);
    memory_free_secret(credentials->session_token);
    credentials->access_key = credentials->secret_key = credentials->session_token = NULL;
}

static void replace(char **field, const char *text, size_t size)
{
    memory_free_secret(*field);
    *field = size > 0 ? memory_copy(text, size) : NULL;
}

static bool is_keypair(const struct sink_credentials *found)
{
    return found->access_key != NULL && found->secret_key != NULL;
}

/* ---- the shared profile ---- */

struct line {
    const char *text;
    size_t size;
};

static struct line trim(const char *text, size_t size)
{
    while (size > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        size--;
    }
    while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\t' || text[size - 1] == '\r')) {
        size--;
    }
    return (struct line){text, size};
}

static bool is_text(struct line line, const char *text)
{
    return line.size == strlen(text) && memcmp(line.text, text, line.size) == 0;
}

static bool names_profile(struct line line, const char *profile)
{
    struct line name = trim(line.text + 1, line.size - 2);

    return is_text(name, profile);
}

static void take_setting(struct line line, struct sink_credentials *found)
{
    const char *equals = memchr(line.text, '=', line.size);

    if (equals == NULL) {
        return;
    }
    struct line name = trim(line.text, (size_t)(equals - line.text));
    struct line value = trim(equals + 1, (size_t)(line.text + line.size - equals - 1));
    if (is_text(name, "aws_access_key_id")) {
        replace(&found->access_key, value.text, value.size);
    } else if (is_text(name, "aws_secret_access_key")) {
        replace(&found->secret_key, value.text, value.size);
    } else if (is_text(name, "aws_session_token")) {
        replace(&found->session_token, value.text, value.size);
    }
}

int credentials_read_profile(const char *text, const char *profile, struct sink_credentials *found)
{
    bool ours = false;

    *found = (struct sink_credentials){.expires = {INT64_MAX}};
    while (*text != '\0') {
        size_t size = strcspn(text, "\n");
        struct line line = trim(text, size);
        if (line.size >= 2 && line.text[0] == '[' && line.text[line.size - 1] == ']') {
            ours = names_profile(line, profile);
        } else if (ours && line.size > 0 && line.text[0] != '#' && line.text[0] != ';') {
            take_setting(line, found);
        }
        text += size + (text[size] == '\n' ? 1 : 0);
    }
    if (!is_keypair(found)) {
        sink_credentials_free(found);
        return QS_ERROR_NOT_FOUND;
    }
    return 0;
}

/* ---- JSON: containers and instances ---- */

static bool take_expiry(const char *text, size_t size, struct sink_credentials *found)
{
    return clock_parse_wall(text, size, &found->expires);
}

static bool take_member(struct json_text key, struct json_text value, struct sink_credentials *found)
{
    struct name text;

    if (!json_text_string(value, &text)) {
        return true; /* null, or something that is not ours */
    }
    if (json_text_is(key, "AccessKeyId")) {
        replace(&found->access_key, text.bytes, text.size);
    } else if (json_text_is(key, "SecretAccessKey")) {
        replace(&found->secret_key, text.bytes, text.size);
    } else if (json_text_is(key, "Token")) {
        replace(&found->session_token, text.bytes, text.size);
    } else if (json_text_is(key, "Expiration")) {
        return take_expiry(text.bytes, text.size, found);
    }
    return true;
}

int credentials_read_json(char *text, size_t size, struct sink_credentials *found, struct error *error)
{
    struct json_scan scan = {0};
    struct json_value whole;
    struct json_walk walk;
    struct json_text key;
    struct json_text value;
    const char *start = json_skip_blank(text, text + size);
    bool good = json_scan_value(&scan, start, text + size, &whole) != NULL &&
                json_walk_object(&walk, &scan, (struct json_text){text + (start - text), whole.size});

    *found = (struct sink_credentials){.expires = {INT64_MAX}};
    while (good && json_walk_member(&walk, &key, &value)) {
        good = take_member(key, value, found);
    }
    free(scan.bits);
    if (!good || !is_keypair(found)) {
        sink_credentials_free(found);
        return error_set(error, QS_ERROR_BODY, "the answer holds no AccessKeyId and SecretAccessKey");
    }
    error_clear(error);
    return 0;
}

/* ---- XML: STS ---- */

struct sts_answer {
    struct sink_credentials *found;
    bool bad_expiry;
};

static void take_element(void *argument, const char *path, const char *text, size_t size)
{
    static const char open[] = "AssumeRoleWithWebIdentityResponse/AssumeRoleWithWebIdentityResult/Credentials/";
    struct sts_answer *answer = argument;

    if (strncmp(path, open, sizeof open - 1) != 0) {
        return;
    }
    path += sizeof open - 1;
    if (strcmp(path, "AccessKeyId") == 0) {
        replace(&answer->found->access_key, text, size);
    } else if (strcmp(path, "SecretAccessKey") == 0) {
        replace(&answer->found->secret_key, text, size);
    } else if (strcmp(path, "SessionToken") == 0) {
        replace(&answer->found->session_token, text, size);
    } else if (strcmp(path, "Expiration") == 0) {
        answer->bad_expiry = !take_expiry(text, size, answer->found);
    }
}

int credentials_read_sts(const char *text, size_t size, struct sink_credentials *found, struct error *error)
{
    struct sts_answer answer = {.found = found};

    *found = (struct sink_credentials){.expires = {INT64_MAX}};
    if (!s3_xml_read(text, size, take_element, &answer) || answer.bad_expiry || !is_keypair(found)) {
        sink_credentials_free(found);
        return error_set(error, QS_ERROR_BODY, "the answer holds no credentials");
    }
    error_clear(error);
    return 0;
}
