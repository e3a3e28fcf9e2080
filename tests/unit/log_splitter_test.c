/*
 * What strangers' bytes become on their way into the log, whatever the reads that they come in.
 */
#include "supervisor/log_splitter.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char taken[65536]; /* lines, each with `|` behind it */
static size_t longest;

static void take(void *argument, const char *line, size_t size)
{
    ck_assert_ptr_eq(argument, taken);
    ck_assert_uint_eq(strlen(line), size);
    ck_assert_uint_lt(strlen(taken) + size + 2, sizeof taken);
    strcat(taken, line);
    strcat(taken, "|");
    longest = size > longest ? size : longest;
}

static void split(const char *bytes, size_t size, size_t piece)
{
    static struct log_splitter splitter;

    memset(&splitter, 0, sizeof splitter);
    taken[0] = '\0';
    longest = 0;
    for (size_t i = 0; i < size; i += piece) {
        log_splitter_feed(&splitter, bytes + i, size - i < piece ? size - i : piece, take, taken);
    }
    log_splitter_end(&splitter, take, taken);
}

static const struct {
    const char *bytes;
    const char *lines;
} cases[] = {
    {"one\ntwo\n", "one|two|"},
    {"no end", "no end|"},
    {"\n\n \n", " |"},
    {"caff\xc3\xa8 \xe2\x82\xac \xf0\x9f\x98\x8b\n", "caff\xc3\xa8 \xe2\x82\xac \xf0\x9f\x98\x8b|"},
    {"a\tb\rc\a\b\v\f\x7f\x01"
     "d\r\n",
     "a bcd|"},
    /* broken text is spelled out, and what follows it is read anew */
    {"\xff\xfe x\n", "\\xff\\xfe x|"},
    {"\xc3\n", "\\xc3|"},
    {"\xe2\x82\n", "\\xe2\\x82|"},
    {"\xe2\x82\xc3\xa8\n", "\\xe2\\x82\xc3\xa8|"},
    {"\xe2\x82y\n", "\\xe2\\x82y|"},
    {"\xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80\n", "\\xc0\\xaf \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80|"},
    {"\x9b"
     "31m\n",
     "\\x9b31m|"},
    /* CSI: colours, the cursor, modes */
    {"\x1b[31;1mred\x1b[0m\x1b[2J\x1b[?25l.\n", "red.|"},
    {"\xc2\x9b"
     "31mred\n",
     "red|"},
    {"\x1b[3\x7f"
     "1mred\n",
     "red|"},
    {"\x1b[12\n31m\n", "31m|"},
    {"\x1b[1\x18text\n", "text|"},
    {"\x1b[1\x1b[2mtext\n", "text|"},
    {"\x1b[1\xc3\xa8\n", "\xc3\xa8|"},
    /* OSC and its like: titles, links, the clipboard */
    {"\x1b]0;title\a.\n", ".|"},
    {"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\.\n", "link.|"},
    {"\x1b]52;c;aGk=\xc2\x9c.\n", ".|"},
    {"\x1b]0;\xc2\xa9\xc3\xa8\a.\n", ".|"},
    {"\x1bPq#0\x1b\\.\x1bXsos\x1b\\.\x1b^pm\x1b\\.\x1b_apc\x1b\\.\n", "....|"},
    {"\xc2\x9d"
     "0;title\a.\xc2\x90q\xc2\x9c.\n",
     "..|"},
    {"\x1b]0;never ends\nnext\n", "next|"},
    {"\x1b]0;a\x18text\n", "text|"},
    {"\x1b]0;a\x1b[31mtext\n", "text|"},
    {"\x1b]0;a\x1b]0;b\atext\n", "text|"},
    /* other escapes: character sets, reset, keypad; and C1 controls that end at once */
    {"\x1b(B\x1b#8\x1b"
     "c\x1b=\x1b>text\n",
     "text|"},
    {"\x1b\x1b[31mtext\n", "text|"},
    {"\x1b\xc3\xa8\n", "\xc3\xa8|"},
    {"\x1b\ntext\n", "text|"},
    {"\x1b\rtext\n", "text|"},
    {"\xc2\x85"
     "text\xc2\x84\n",
     "text|"},
    {"\x1b", ""},
};

START_TEST(lines_are_clean_whatever_the_reads)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t piece = 1; piece < 6; piece++) {
            split(cases[i].bytes, strlen(cases[i].bytes), piece);
            ck_assert_msg(strcmp(taken, cases[i].lines) == 0, "case %zu in pieces of %zu: '%s'", i, piece, taken);
        }
    }
    split("a\0b\n", 4, 4);
    ck_assert_str_eq(taken, "ab|");
}
END_TEST

START_TEST(a_long_line_is_cut_between_characters)
{
    static char bytes[20000];
    static const char *const fillers[] = {"x", "\xc3\xa8", "\xe2\x82\xac", "\xf0\x9f\x98\x8b", "\xff"};

    for (size_t i = 0; i < sizeof fillers / sizeof *fillers; i++) {
        for (size_t shift = 0; shift < 4; shift++) {
            const char *end;

            memset(bytes, '\0', sizeof bytes);
            memset(bytes, 'x', shift);
            while (strlen(bytes) < 9000) {
                strcat(bytes, fillers[i]);
            }
            strcat(bytes, "\nnext\n");
            split(bytes, strlen(bytes), 1000);
            ck_assert_uint_le(longest, LOG_SPLITTER_LINE_MAX);
            ck_assert_uint_gt(longest, LOG_SPLITTER_LINE_MAX - 8);
            end = strstr(taken, "…|next|");
            ck_assert_ptr_nonnull(end);
            for (const char *c = taken; c < end;) { /* whole characters up to the mark */
                size_t length = utf8_length(c, (size_t)(end - c));

                ck_assert_uint_gt(length, 0);
                c += length;
            }
        }
    }
}
END_TEST

START_TEST(the_longest_line_is_not_cut)
{
    static char bytes[LOG_SPLITTER_LINE_MAX + 2];

    memset(bytes, 'x', LOG_SPLITTER_LINE_MAX);
    bytes[LOG_SPLITTER_LINE_MAX] = '\n';
    split(bytes, sizeof bytes - 1, 4096);
    ck_assert_uint_eq(longest, LOG_SPLITTER_LINE_MAX);
    ck_assert_ptr_null(strstr(taken, "…"));
}
END_TEST

/* No control byte and nothing that isn't UTF-8, whatever comes in. */
START_TEST(noise_comes_out_clean)
{
    static char bytes[4096];
    unsigned state = 1;

    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < sizeof bytes; i++) {
            static const char likely[] = "\x1b\x1b[]\\;m\a\n\xc2\x9b\x9c\x9d\xe2\x82x";

            state = state * 1664525u + 1013904223u;
            bytes[i] = (state >> 30) == 0 ? (char)(state >> 20) : likely[(state >> 16) % (sizeof likely - 1)];
        }
        split(bytes, sizeof bytes, 1 + (state >> 24));
        for (const unsigned char *c = (const unsigned char *)taken; *c != '\0';) {
            size_t length = utf8_length((const char *)c, strnlen((const char *)c, UTF8_LENGTH_MAX));

            if (length == 0 || *c < ' ' || *c == 0x7f || (c[0] == 0xc2 && c[1] < 0xa0)) {
                ck_abort_msg("byte %02x in round %d", *c, round); /* an assertion a byte would take its time */
            }
            c += length;
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log_splitter");
    TCase *tests = tcase_create("bytes");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, lines_are_clean_whatever_the_reads);
    tcase_add_test(tests, a_long_line_is_cut_between_characters);
    tcase_add_test(tests, the_longest_line_is_not_cut);
    tcase_add_test(tests, noise_comes_out_clean);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
