/*
 * The policy's document: the seed's verbs on the prefix, the list on the bucket without a condition, KMS where it is used.
 */
#include <check.h>
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/commands/policy.h"
#include "tests/unit/environments.h"

static bool without_prefix;

static cJSON *policy_of(struct environment *environment)
{
    struct settings settings = must_read(environment);

    if (without_prefix) {
        settings.prefix[0] = '\0';
    }
    char *text = policy_text(&settings);
    cJSON *document = cJSON_Parse(text);

    ck_assert_ptr_nonnull(document);
    ck_assert_int_eq(text[strlen(text) - 1], '\n');
    free(text);
    settings_free(&settings);
    return document;
}

static const cJSON *statement(const cJSON *document, int which)
{
    const cJSON *policy = cJSON_GetObjectItemCaseSensitive(document, "policy");

    return cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(policy, "Statement"), which);
}

static const char *text_of(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

    ck_assert_ptr_nonnull(text);
    return text;
}

static const char *condition(const cJSON *object, const char *operator, const char * key)
{
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(object, "Condition");
    const cJSON *one = cJSON_GetObjectItemCaseSensitive(all, operator);

    return one != NULL ? text_of(one, key) : NULL;
}

static const char *lifecycle_prefix(const cJSON *document)
{
    const cJSON *rules =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(document, "lifecycle"), "Rules");

    return text_of(cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(rules, 0), "Filter"), "Prefix");
}

START_TEST(names_five_verbs)
{
    struct environment environment = least;

    set(&environment, "QUEEN_S3_BUCKET", "my-lake");
    cJSON *document = policy_of(&environment);
    ck_assert_str_eq(text_of(statement(document, 0), "Resource"), "arn:aws:s3:::my-lake");
    ck_assert_ptr_null(cJSON_GetObjectItemCaseSensitive(statement(document, 0), "Condition"));
    ck_assert_str_eq(text_of(statement(document, 1), "Resource"), "arn:aws:s3:::my-lake/queen/*");
    ck_assert_str_eq(text_of(statement(document, 2), "Resource"), "arn:aws:s3:::my-lake/queen/_queen/*/checkpoint/*");
    ck_assert_ptr_null(statement(document, 3));
    ck_assert_str_eq(lifecycle_prefix(document), "queen/");
    cJSON_Delete(document);
}
END_TEST

START_TEST(minds_prefix_and_region)
{
    struct environment environment = least;

    set(&environment, "QUEEN_S3_BUCKET", "b");
    set(&environment, "QUEEN_S3_REGION", "cn-north-1");
    without_prefix = true;
    cJSON *document = policy_of(&environment);
    without_prefix = false;
    ck_assert_str_eq(text_of(statement(document, 1), "Resource"), "arn:aws-cn:s3:::b/*");
    ck_assert_str_eq(text_of(statement(document, 2), "Resource"), "arn:aws-cn:s3:::b/_queen/*/checkpoint/*");
    ck_assert_str_eq(lifecycle_prefix(document), "");
    cJSON_Delete(document);
    set(&environment, "QUEEN_S3_PREFIX", "a*/$b?");
    document = policy_of(&environment);
    ck_assert_str_eq(text_of(statement(document, 1), "Resource"), "arn:aws-cn:s3:::b/a${*}/${$}b${?}/*");
    ck_assert_str_eq(lifecycle_prefix(document), "a*/$b?/");
    cJSON_Delete(document);
}
END_TEST

START_TEST(adds_the_key_of_kms)
{
    static const struct {
        const char *id;
        const char *resource;
        const char *alias;
    } cases[] = {
        {NULL, "arn:aws:kms:eu-central-1:*:key/*", NULL},
        {"1234-ab", "arn:aws:kms:eu-central-1:*:key/1234-ab", NULL},
        {"arn:aws:kms:eu-central-1:111122223333:key/1", "arn:aws:kms:eu-central-1:111122223333:key/1", NULL},
        {"alias/lake", "arn:aws:kms:eu-central-1:*:key/*", "alias/lake"},
        {"arn:aws:kms:eu-central-1:111122223333:alias/lake", "arn:aws:kms:eu-central-1:*:key/*", "alias/lake"},
    };

    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct environment environment = least;
        set(&environment, "QUEEN_S3_SSE", "aws:kms");
        set(&environment, "QUEEN_S3_REGION", "eu-central-1");
        set(&environment, "QUEEN_S3_ENDPOINT", i % 2 == 0 ? "https://s3.eu-central-1.amazonaws.com" : "http://gateway");
        set(&environment, "QUEEN_S3_SSE_KMS_KEY_ID", cases[i].id);
        cJSON *document = policy_of(&environment);
        const cJSON *kms = statement(document, 3);
        const char *alias = condition(kms, "ForAnyValue:StringEquals", "kms:ResourceAliases");
        const char *service = condition(kms, "StringEquals", "kms:ViaService");
        ck_assert_str_eq(text_of(kms, "Resource"), cases[i].resource);
        ck_assert_str_eq(alias != NULL ? alias : "", cases[i].alias != NULL ? cases[i].alias : "");
        ck_assert_str_eq(service != NULL ? service : "", i % 2 == 0 ? "s3.eu-central-1.amazonaws.com" : "");
        cJSON_Delete(document);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy");
    TCase *tests = tcase_create("policy");
    SRunner *runner = srunner_create(suite);

    tcase_add_test(tests, names_five_verbs);
    tcase_add_test(tests, minds_prefix_and_region);
    tcase_add_test(tests, adds_the_key_of_kms);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
