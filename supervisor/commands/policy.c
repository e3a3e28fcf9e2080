/*
 * `queen-s3 policy`: what the sink's key pair has to be allowed, and no more (spec 4.4). Five verbs: it never deletes a
 * data object, only its own checkpoints. JSON has no comments, so what there is to say stands beside the policy.
 *
 * Sources: AWS IAM User Guide, "Policy elements: Resource" and "Policy variables" (`${*}` for a literal star), "Amazon
 * Resource Names" (partitions); AWS KMS Developer Guide, "kms:ViaService", "kms:ResourceAliases"; Amazon S3 User Guide,
 * "Protecting data with SSE-KMS" (multipart uploads need kms:Decrypt), "Lifecycle configuration elements".
 */
#include "supervisor/commands/policy.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "common/memory.h"
#include "supervisor/commands/arguments.h"
#include "supervisor/commands/commands.h"
#include "supervisor/commands/output.h"

static const char why_list[] =
    "s3:ListBucket is granted on the whole bucket, without an s3:prefix condition: HEAD and GET of a key that isn't "
    "there answer 404 only to who may list, and with the condition a missing key answers 403, which can't be told "
    "from a refusal. It shows names of keys, never their content.";
static const char why_attach[] =
    "Attach it to the user or role whose key pair the sink has. As a policy of the bucket itself each statement wants "
    "a Principal too.";
static const char why_delete[] = "The sink deletes nothing but its own checkpoints, and of these all but the last two.";
static const char why_lifecycle[] =
    "The sink aborts its own multipart uploads; one that a killed process left behind costs storage until this rule "
    "of the bucket's lifecycle configuration ends it.";
static const char why_kms[] =
    "QUEEN_S3_SSE=aws:kms: an upload makes a data key, and reading an object or completing a multipart upload decrypts "
    "one. The policy of the KMS key has to allow them too.";

/* arn:aws, and its siblings where the region is one of theirs. */
static const char *arn_partition(const char *region)
{
    static const struct {
        const char *region;
        const char *partition;
    } others[] = {{"cn-", "aws-cn"}, {"us-gov-", "aws-us-gov"}, {"us-iso-", "aws-iso"}, {"us-isob-", "aws-iso-b"}};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strncmp(region, others[i].region, strlen(others[i].region)) == 0) {
            return others[i].partition;
        }
    }
    return "aws";
}

/* In a resource `*`, `?` and `${` have a meaning; a prefix may have them as they are. */
static void add_literal(struct byte_buffer *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("*?$", *text) != NULL) {
            byte_buffer_add_format(out, "${%c}", *text);
        } else {
            byte_buffer_add(out, text, 1);
        }
    }
}

/* arn:aws:s3:::bucket, and behind it prefix/pattern where there is a pattern. */
static char *resource(const struct settings *settings, const char *pattern)
{
    struct byte_buffer out = {0};

    byte_buffer_add_format(&out, "arn:%s:s3:::%s", arn_partition(settings->region), settings->bucket);
    if (pattern != NULL) {
        byte_buffer_add_text(&out, "/");
        add_literal(&out, settings->prefix);
        byte_buffer_add_text(&out, settings->prefix[0] != '\0' ? "/" : "");
        byte_buffer_add_text(&out, pattern);
    }
    return byte_buffer_take(&out);
}

/* Adds a statement and returns it. resource: malloc, freed here. */
static cJSON *add_statement(cJSON *statements, const char *sid, const char *const *actions, int count,
                            char *resource_text)
{
    cJSON *statement = cJSON_CreateObject();

    cJSON_AddStringToObject(statement, "Sid", sid);
    cJSON_AddStringToObject(statement, "Effect", "Allow");
    cJSON_AddItemToObject(statement, "Action", cJSON_CreateStringArray(actions, count));
    cJSON_AddStringToObject(statement, "Resource", resource_text);
    cJSON_AddItemToArray(statements, statement);
    free(resource_text);
    return statement;
}

static void add_condition(cJSON *statement, const char *operator, const char * key, const char *value)
{
    cJSON *condition = cJSON_GetObjectItemCaseSensitive(statement, "Condition");

    if (condition == NULL) {
        condition = cJSON_AddObjectToObject(statement, "Condition");
    }
    cJSON_AddStringToObject(cJSON_AddObjectToObject(condition, operator), key, value);
}

/* A key's id or ARN names it; an alias is a name that may come to mean another key, so it is held as a condition. */
static void add_kms(cJSON *statements, const struct settings *settings)
{
    static const char *const actions[] = {"kms:GenerateDataKey", "kms:Decrypt"};
    const char *partition = arn_partition(settings->region);
    const char *id = settings->sse_kms_key_id;
    const char *alias = id == NULL ? NULL : strstr(id, "alias/");
    bool names_key = id != NULL && alias == NULL;
    char *key = names_key && strncmp(id, "arn:", 4) == 0
                    ? memory_copy_text(id)
                    : memory_format("arn:%s:kms:%s:*:key/%s", partition, settings->region, names_key ? id : "*");
    cJSON *statement = add_statement(statements, "EncryptAndDecryptWithTheKeyOfTheBucket", actions, 2, key);

    if (alias != NULL) {
        add_condition(statement, "ForAnyValue:StringEquals", "kms:ResourceAliases", alias);
    }
    if (settings_at_amazon(settings)) {
        char *service =
            memory_format("s3.%s.amazonaws.com%s", settings->region, strcmp(partition, "aws-cn") == 0 ? ".cn" : "");
        add_condition(statement, "StringEquals", "kms:ViaService", service);
        free(service);
    }
}

static cJSON *make_policy(const struct settings *settings)
{
    static const char *const list[] = {"s3:ListBucket"};
    static const char *const work[] = {"s3:PutObject", "s3:GetObject", "s3:AbortMultipartUpload"};
    static const char *const collect[] = {"s3:DeleteObject"};
    cJSON *policy = cJSON_CreateObject();

    cJSON_AddStringToObject(policy, "Version", "2012-10-17");
    cJSON *statements = cJSON_AddArrayToObject(policy, "Statement");
    add_statement(statements, "ListSoThatAMissingKeyAnswers404", list, 1, resource(settings, NULL));
    add_statement(statements, "WriteAndRead", work, 3, resource(settings, "*"));
    add_statement(statements, "GarbageCollectCheckpointsOnly", collect, 1, resource(settings, "_queen/*/checkpoint/*"));
    if (settings->sse == SSE_KMS) {
        add_kms(statements, settings);
    }
    return policy;
}

static cJSON *make_lifecycle(const struct settings *settings)
{
    cJSON *lifecycle = cJSON_CreateObject();
    cJSON *rule = cJSON_CreateObject();
    char *prefix = memory_format("%s%s", settings->prefix, settings->prefix[0] != '\0' ? "/" : "");

    cJSON_AddItemToArray(cJSON_AddArrayToObject(lifecycle, "Rules"), rule);
    cJSON_AddStringToObject(rule, "ID", "queen-s3-abort-incomplete-multipart-uploads");
    cJSON_AddStringToObject(rule, "Status", "Enabled");
    cJSON_AddStringToObject(cJSON_AddObjectToObject(rule, "Filter"), "Prefix", prefix);
    cJSON_AddNumberToObject(cJSON_AddObjectToObject(rule, "AbortIncompleteMultipartUpload"), "DaysAfterInitiation", 1);
    free(prefix);
    return lifecycle;
}

char *policy_text(const struct settings *settings)
{
    cJSON *document = cJSON_CreateObject();
    cJSON *why = cJSON_AddObjectToObject(document, "why");

    cJSON_AddStringToObject(why, "policy", why_attach);
    cJSON_AddStringToObject(why, "s3:ListBucket", why_list);
    cJSON_AddStringToObject(why, "s3:DeleteObject", why_delete);
    if (settings->sse == SSE_KMS) {
        cJSON_AddStringToObject(why, "kms", why_kms);
    }
    cJSON_AddStringToObject(why, "lifecycle", why_lifecycle);
    cJSON_AddItemToObject(document, "policy", make_policy(settings));
    cJSON_AddItemToObject(document, "lifecycle", make_lifecycle(settings));
    char *printed = cJSON_Print(document);
    char *text = printed != NULL ? memory_format("%s\n", printed) : NULL;
    cJSON_free(printed);
    cJSON_Delete(document);
    return text;
}

static int run_policy(int argc, char **argv)
{
    struct arguments arguments;
    struct settings settings;
    struct error error;
    int code = EXIT_SUCCESS;

    output_begin();
    if (arguments_parse(&command_policy, argc, argv, &arguments, &error) != 0) {
        return command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    free(arguments.words);
    if (settings_load_bucket(arguments.values[COMMAND_FILE], false, &settings, &error) != 0) {
        return command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    if (settings.file_root != NULL) {
        code = command_fail(COMMAND_CONFIGURATION, "QUEEN_S3_ENDPOINT=%s: a folder has no policy, only permissions",
                            settings.endpoint);
    } else {
        char *text = policy_text(&settings);
        output_text(text != NULL ? text : "");
        free(text);
    }
    settings_free(&settings);
    return output_end(code);
}

static const struct command_exit exits[] = {
    {EXIT_SUCCESS, "the document has been printed"},
    {COMMAND_CONFIGURATION, "arguments or settings are wrong, or the endpoint is a folder"},
    {0, NULL},
};

static const struct command_example examples[] = {
    {"queen-s3 policy | jq .policy > policy.json", "writes the policy for the sink's user or role"},
    {"queen-s3 policy | jq .lifecycle > lifecycle.json", "writes the lifecycle rule for the bucket"},
    {NULL, NULL},
};

const struct command command_policy = {
    .name = "policy",
    .words = "",
    .summary = "print the least-privilege policy and the lifecycle rule for this bucket",
    .help = "One JSON document on standard output: `policy` is for the user or role whose key pair the sink has, "
            "`lifecycle` for the bucket (put-bucket-lifecycle-configuration takes it as it is), `why` is for you.\n"
            "Needs QUEEN_S3_ENDPOINT, QUEEN_S3_REGION and QUEEN_S3_BUCKET, and minds QUEEN_S3_PREFIX, QUEEN_S3_SSE and "
            "QUEEN_S3_SSE_KMS_KEY_ID; no keys, and nothing is asked of the bucket.",
    .options = command_only_file,
    .exits = exits,
    .examples = examples,
    .run = run_policy,
};
