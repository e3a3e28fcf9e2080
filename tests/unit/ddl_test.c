/*
 * The texts of `ddl`: every engine and configuration is filled in whole, what is quoted is quoted, no secret is in it.
 * (Whether engines take them is what the integration test asks.)
 */
#include "supervisor/commands/ddl.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/environments.h"

static char *fill(struct environment *environment, const char *text, const char *queue)
{
    struct settings settings = must_read(environment);
    char *filled = ddl_fill(text, &settings, queue);

    settings_free(&settings);
    return filled;
}

static void expect(struct environment *environment, const char *text, const char *queue, const char *expected)
{
    char *filled = fill(environment, text, queue);

    ck_assert_str_eq(filled, expected);
    free(filled);
}

START_TEST(quotes_as_each_engine_does)
{
    struct environment environment = least;

    expect(&environment, "{{queue sql}}\n", "it's", "'it''s'\n");
    expect(&environment, "{{queue escape}}\n", "it's a\\b", "'it\\'s a\\\\b'\n");
    expect(&environment, "{{queue id}} {{queue id-escape}}\n", "a\"b\\", "\"a\"\"b\\\" \"a\\\"b\\\\\"\n");
    expect(&environment, "{{queue tick}}\n", "select `x`", "`select ``x```\n");
    expect(&environment, "x{{queue python}}y\n", "a\"b", "x\"a\\\"b\"y\n");
    expect(&environment, "{{queue name}}\n", "9 Orders/caff\xc3\xa8", "_9_orders_caff__\n");
    expect(&environment, "{{queue raw}}{{nothing raw}}\n", "a b", "a b\n");
}
END_TEST

START_TEST(names_the_place)
{
    struct environment environment = least;

    expect(&environment, "{{folder raw}} {{objects raw}}\n", "a/b",
           "s3://my-lake/queen/queue=a%2Fb s3://my-lake/queen/queue=a%2Fb/dt=*/hour=*/w-*.jsonl.zst\n");
    expect(&environment, "{{url-objects raw}}\n", "a/b",
           "https://my-lake.s3.example.com/queen/queue=a%252Fb/dt=*/hour=*/w-*.jsonl.zst\n");
    expect(&environment, "{{polars-objects raw}}\n", "a/b",
           "s3://my-lake/queen/queue=a[%]2Fb/dt=*/hour=*/w-*.jsonl.zst\n");
    set(&environment, "QUEEN_S3_PATH_STYLE", "true");
    set(&environment, "QUEEN_S3_ALIGN", "day");
    set(&environment, "QUEEN_S3_FORMAT", "parquet");
    set(&environment, "QUEEN_S3_PREFIX", "deep/er");
    expect(&environment, "{{url-objects raw}} {{bucket-host raw}}\n", "q",
           "https://s3.example.com/my-lake/deep/er/queue=q/dt=*/w-*.parquet https://my-lake.s3.example.com\n");
    set(&environment, "QUEEN_S3_ENDPOINT", "file:///srv/lakes");
    expect(&environment, "{{folder raw}} {{key raw}} {{file-url raw}}\n", "q",
           "/srv/lakes/my-lake/deep/er/queue=q deep/er/queue=q file:///srv/lakes/my-lake/deep/er/queue=q\n");
}
END_TEST

START_TEST(keeps_lines_by_their_conditions)
{
    struct environment environment = least;

    expect(&environment, "%s3 a\n%file b\n%s3+jsonl c\n%s3+parquet d\n%s3+jsonl+zstd   e\nf\n", "q", "a\nc\n  e\nf\n");
    expect(&environment, "%custom a\n%amazon b\n%http c\n%virtual-host d\n%path-style e\n%wildcard f\n", "q", "a\nd\n");
    set(&environment, "QUEEN_S3_ENDPOINT", "http://s3.eu-central-1.amazonaws.com");
    set(&environment, "QUEEN_S3_PREFIX", "a*b");
    expect(&environment, "%custom a\n%amazon b\n%http c\n%wildcard f\n%hour g\n%day h\n", "q", "b\nc\nf\ng\n");
}
END_TEST

static const char *const formats[][3] = {{"jsonl", "zstd", "zstd"},
                                         {"jsonl", "gzip", "zstd"},
                                         {"jsonl", "none", "zstd"},
                                         {"parquet", "zstd", "zstd"},
                                         {"parquet", "zstd", "snappy"}};
static const char *const endpoints[] = {"https://s3.eu-central-1.amazonaws.com", "http://127.0.0.1:9000",
                                        "file:///srv/lakes"};
static const char *const aligns[] = {"hour", "day", "none"};

static void check_text(const struct settings *settings, const char *engine)
{
    char *text = ddl_text(settings, engine, "or\"d'ers");

    ck_assert_ptr_nonnull(text);
    ck_assert_ptr_null(strstr(text, "{{"));
    ck_assert_ptr_null(strstr(text, "}}"));
    ck_assert_ptr_null(strstr(text, "\n%"));
    ck_assert_ptr_null(strstr(text, settings->secret_key));
    ck_assert_ptr_null(strstr(text, settings->access_key));
    ck_assert_msg(strstr(text, "queue=or%22d%27ers") != NULL || strstr(text, "queue=or%2522d%2527ers") != NULL ||
                      strstr(text, "queue=or[%]22d[%]27ers") != NULL,
                  "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "payload"));
    ck_assert(settings->align == ALIGN_DAY ? strstr(text, "hour=*") == NULL : strstr(text, "hour") != NULL);
    free(text);
}

/* _i: 5 formats, 3 endpoints, 3 alignments, 2 addressings. */
START_TEST(fills_in_every_configuration)
{
    struct environment environment = least;

    set(&environment, "QUEEN_S3_FORMAT", formats[_i % 5][0]);
    set(&environment, "QUEEN_S3_COMPRESSION", formats[_i % 5][1]);
    set(&environment, "QUEEN_S3_PARQUET_CODEC", formats[_i % 5][2]);
    set(&environment, "QUEEN_S3_ENDPOINT", endpoints[_i / 5 % 3]);
    set(&environment, "QUEEN_S3_ALIGN", aligns[_i / 15 % 3]);
    set(&environment, "QUEEN_S3_PATH_STYLE", _i / 45 == 0 ? "true" : "false");
    set(&environment, "QUEEN_S3_SECRET_KEY", "s3cr3t-key");
    set(&environment, "QUEEN_S3_ACCESS_KEY", "AKIA1234");
    struct settings settings = must_read(&environment);
    for (const struct ddl_engine *engine = ddl_engines; engine->name != NULL; engine++) {
        check_text(&settings, engine->name);
    }
    ck_assert_ptr_null(ddl_text(&settings, "oracle", "q"));
    settings_free(&settings);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ddl");
    TCase *tests = tcase_create("ddl");
    SRunner *runner = srunner_create(suite);

    tcase_add_test(tests, quotes_as_each_engine_does);
    tcase_add_test(tests, names_the_place);
    tcase_add_test(tests, keeps_lines_by_their_conditions);
    tcase_add_loop_test(tests, fills_in_every_configuration, 0, 90);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
