/* Notes of a cut: what is written is read back, what isn't ours is left alone, and what isn't understood is not guessed. */
#include "worker/connector/cut_note.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct cut_note sample = {.next = 1812,
                                       .key = "raw/orders.eu/00000-0-1811.jsonl.zst",
                                       .shape = {SINK_JSON_ARRAY, COMPRESSION_ZSTD, true, false},
                                       .schema = SINK_SCHEMA_FLATBUFFER,
                                       .on_undecodable = UNDECODABLE_SKIP};

static enum cut_note_kind read_text(const char *text, struct cut_note *note)
{
    return cut_note_read(text, strlen(text), note);
}

START_TEST(what_is_written_is_read_back)
{
    static const enum setting_compression compressions[] = {COMPRESSION_NONE, COMPRESSION_GZIP, COMPRESSION_ZSTD};
    struct error error;

    for (int i = 0; i < 3 * 3 * SINK_SCHEMA_COUNT * 3 * 4; i++) {
        struct cut_note note = sample;
        struct cut_note got;
        note.next = INT64_C(1) << (i % 53);
        note.shape =
            (struct sink_shape){(enum sink_format)(i % 3), compressions[i / 3 % 3], i / 9 % 2 == 0, i / 18 % 2 == 0};
        note.schema = (enum sink_schema)(i / 36 % SINK_SCHEMA_COUNT);
        note.on_undecodable = (enum on_undecodable)(i / 216 % 3);
        char *text = cut_note_write(&note, &error);
        ck_assert_ptr_nonnull(text);
        ck_assert_int_eq(read_text(text, &got), CUT_NOTE_FILE);
        ck_assert_int_eq(got.next, note.next);
        ck_assert_str_eq(got.key, note.key);
        ck_assert_int_eq(got.schema, note.schema);
        ck_assert_int_eq(got.on_undecodable, note.on_undecodable);
        ck_assert_int_eq(got.shape.format, note.shape.format);
        ck_assert_int_eq(got.shape.compression, note.shape.compression);
        ck_assert_int_eq(got.shape.include_metadata, note.shape.include_metadata);
        ck_assert_int_eq(got.shape.include_headers, note.shape.include_headers);
        free(text);
    }
}
END_TEST

START_TEST(a_note_fits_what_a_broker_takes)
{
    struct cut_note note = sample;
    struct error error;

    memset(note.key, 'k', SINK_KEY_MAX);
    note.key[SINK_KEY_MAX] = '\0';
    char *text = cut_note_write(&note, &error);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_le(strlen(text), CUT_NOTE_MAX);
    free(text);
    memset(note.key, 1, SINK_KEY_MAX); /* six bytes each, as JSON spells them */
    ck_assert_ptr_null(cut_note_write(&note, &error));
    ck_assert_int_eq(error.code, QS_ERROR_INPUT);
}
END_TEST

START_TEST(what_is_somebody_elses_is_none)
{
    static const char *const others[] = {"",    CUT_NOTE_BLANK, "consumer-1", "{}",
                                         "[1]", "{\"next\":3}", "null",       "\"x\""};
    struct cut_note note;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        ck_assert_msg(read_text(others[i], &note) == CUT_NOTE_NONE, "%s", others[i]);
    }
    ck_assert_int_eq(cut_note_read(NULL, 0, &note), CUT_NOTE_NONE);
}
END_TEST

START_TEST(what_is_not_understood_is_not_guessed)
{
    static const char *const spoiled[][2] = {{"\"queen-s3\":1", "\"queen-s3\":2"},
                                             {"\"next\":1812", "\"next\":0"},
                                             {"\"next\":1812", "\"next\":1.5"},
                                             {"\"next\":1812", "\"nxt\":1812"},
                                             {"\"next\":1812", "\"next\":1e300"},
                                             {"json_array", "parquet"},
                                             {"flat_buffer", "xml"},
                                             {"\"zstd\"", "\"snappy\""},
                                             {"\"skip\"", "\"drop\""},
                                             {"\"include_metadata\":true", "\"include_metadata\":1"},
                                             {"\"key\":\"raw", "\"kex\":\"raw"}};
    struct error error;
    struct cut_note note;
    char *text = cut_note_write(&sample, &error);

    for (size_t i = 0; i < sizeof spoiled / sizeof *spoiled; i++) {
        const char *at = strstr(text, spoiled[i][0]);
        char changed[2048];
        ck_assert_msg(at != NULL, "%s is not in %s", spoiled[i][0], text);
        (void)snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, spoiled[i][1],
                       at + strlen(spoiled[i][0]));
        ck_assert_msg(read_text(changed, &note) == CUT_NOTE_UNREADABLE, "%s", changed);
    }
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cut_note");
    TCase *cases = tcase_create("cut_note");

    tcase_add_test(cases, what_is_written_is_read_back);
    tcase_add_test(cases, a_note_fits_what_a_broker_takes);
    tcase_add_test(cases, what_is_somebody_elses_is_none);
    tcase_add_test(cases, what_is_not_understood_is_not_guessed);
    suite_add_tcase(suite, cases);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
