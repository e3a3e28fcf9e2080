/*
 * What sources of credentials answer: profiles, JSON and XML, whole and broken.
 */
#include "worker/connector/credentials.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/guarded.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct sink_credentials found;
static struct error error;

START_TEST(a_profile_is_found_by_its_name)
{
    static const char text[] = "aws_access_key_id = outside\n"
                               "[ first ]\n# aws_access_key_id = no\n; aws_access_key_id = no\n"
                               "  aws_access_key_id\t=  AK1  \r\naws_secret_access_key=s=1\nregion = x\nnonsense\n"
                               "[second]\naws_access_key_id=AK2\naws_secret_access_key=s2\naws_session_token=t2";
    ck_assert_int_eq(credentials_read_profile(text, "first", &found), 0);
    ck_assert_str_eq(found.access_key, "AK1");
    ck_assert_str_eq(found.secret_key, "s=1");
    ck_assert_ptr_null(found.session_token);
    ck_assert(found.expires.v == INT64_MAX);
    sink_credentials_free(&found);
    ck_assert_int_eq(credentials_read_profile(text, "second", &found), 0);
    ck_assert_str_eq(found.session_token, "t2");
    sink_credentials_free(&found);
}
END_TEST

static const char *const no_profiles[] = {"",
                                          "[default]\n",
                                          "[default]\naws_access_key_id=a\n",
                                          "[defaults]\naws_access_key_id=a\naws_secret_access_key=b\n",
                                          "[default]\naws_access_key_id=\naws_secret_access_key=b\n",
                                          "["};

START_TEST(a_profile_without_a_keypair_is_none)
{
    ck_assert_int_eq(credentials_read_profile(no_profiles[_i], "default", &found), QS_ERROR_NOT_FOUND);
    ck_assert_ptr_null(found.access_key);
    ck_assert_ptr_null(found.secret_key);
}
END_TEST

static int read_json(const char *text)
{
    size_t size = strlen(text);
    return credentials_read_json(guarded_copy(text, size), size, &found, &error);
}

START_TEST(json_of_containers_and_instances)
{
    ck_assert_int_eq(read_json(" {\"Code\":\"Success\",\"AccessKeyId\":\"AK\",\"SecretAccessKey\":\"s\\/k\","
                               "\"Token\":\"t\",\"Expiration\":\"2026-09-03T21:15:04Z\",\"LastUpdated\":null}\n"),
                     0);
    ck_assert_str_eq(found.access_key, "AK");
    ck_assert_str_eq(found.secret_key, "s/k");
    ck_assert_str_eq(found.session_token, "t");
    ck_assert(found.expires.v == INT64_C(1788470104000));
    sink_credentials_free(&found);
    ck_assert_int_eq(read_json("{\"AccessKeyId\":\"AK\",\"SecretAccessKey\":\"s\",\"Token\":null}"), 0);
    ck_assert_ptr_null(found.session_token);
    ck_assert(found.expires.v == INT64_MAX);
    sink_credentials_free(&found);
}
END_TEST

static const char *const no_json[] = {"",
                                      "null",
                                      "[]",
                                      "{\"AccessKeyId\":\"AK\"}",
                                      "{\"AccessKeyId\":",
                                      "{\"AccessKeyId\":\"\",\"SecretAccessKey\":\"s\"}",
                                      "{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"s\",\"Expiration\":\"soon\"}"};

START_TEST(json_without_credentials_is_told)
{
    ck_assert_int_eq(read_json(no_json[_i]), QS_ERROR_BODY);
    ck_assert_ptr_null(found.access_key);
}
END_TEST

#define STS(inside)                                                                                            \
    "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"                  \
    "<AssumeRoleWithWebIdentityResult><Credentials>" inside "</Credentials></AssumeRoleWithWebIdentityResult>" \
    "</AssumeRoleWithWebIdentityResponse>"

START_TEST(an_answer_of_sts)
{
    static const char text[] = STS("<AccessKeyId>AK</AccessKeyId><SecretAccessKey>s&amp;k</SecretAccessKey>"
                                   "<SessionToken>t</SessionToken><Expiration>2026-09-03T21:15:04Z</Expiration>");
    ck_assert_int_eq(credentials_read_sts(text, sizeof text - 1, &found, &error), 0);
    ck_assert_str_eq(found.access_key, "AK");
    ck_assert_str_eq(found.secret_key, "s&k");
    ck_assert_str_eq(found.session_token, "t");
    ck_assert(found.expires.v == INT64_C(1788470104000));
    sink_credentials_free(&found);
}
END_TEST

static const char *const no_sts[] = {"", "<a", "<ErrorResponse/>", STS("<AccessKeyId>AK</AccessKeyId>"),
                                     STS("<AccessKeyId>A</AccessKeyId><SecretAccessKey>s</SecretAccessKey>"
                                         "<Expiration>tomorrow</Expiration>")};

START_TEST(an_answer_of_sts_without_credentials)
{
    ck_assert_int_eq(credentials_read_sts(no_sts[_i], strlen(no_sts[_i]), &found, &error), QS_ERROR_BODY);
    ck_assert_ptr_null(found.access_key);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sink_credentials");
    TCase *test = tcase_create("credentials");
    tcase_add_test(test, a_profile_is_found_by_its_name);
    tcase_add_loop_test(test, a_profile_without_a_keypair_is_none, 0, (int)COUNT(no_profiles));
    tcase_add_test(test, json_of_containers_and_instances);
    tcase_add_loop_test(test, json_without_credentials_is_told, 0, (int)COUNT(no_json));
    tcase_add_test(test, an_answer_of_sts);
    tcase_add_loop_test(test, an_answer_of_sts_without_credentials, 0, (int)COUNT(no_sts));
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
