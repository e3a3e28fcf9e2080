/*
 * Hexadecimal digits, and the ids of partitions that are spelled with them.
 */
#include "common/hex.h"

#include <check.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/partition_id.h"

START_TEST(every_byte_is_a_digit_or_is_none)
{
    for (int byte = 0; byte < 256; byte++) {
        char text[] = {(char)byte, '\0'};
        int value = isxdigit(byte) ? (int)strtol(text, NULL, 16) : -1;

        ck_assert_int_eq(hex_value((char)byte), value);
    }
}
END_TEST

START_TEST(every_byte_there_and_back)
{
    for (int byte = 0; byte < 256; byte++) {
        uint8_t one = (uint8_t)byte;
        char text[3];

        *hex_write(text, &one, 1) = '\0';
        ck_assert_int_eq(hex_byte(text), byte);
        ck_assert_int_eq(hex_byte((char[]){(char)toupper(text[0]), text[1]}), byte);
        ck_assert_int_eq(hex_byte((char[]){text[0], 'g'}), -1);
        ck_assert_int_eq(hex_byte((char[]){'\0', text[1]}), -1);
    }
}
END_TEST

#define ID "0198f3c2-5e0a-7bcd-8ef0-1234567890ab"

START_TEST(an_id_there_and_back)
{
    struct partition_id id;
    char text[PARTITION_ID_TEXT_SIZE + 1] = "";

    ck_assert(partition_id_read((struct name){ID, strlen(ID)}, &id));
    ck_assert_ptr_eq(partition_id_write(text, &id), text + PARTITION_ID_TEXT_SIZE);
    ck_assert_str_eq(text, ID);
    ck_assert(partition_id_read((struct name){"0198F3C2-5E0A-7BCD-8EF0-1234567890AB", strlen(ID)}, &id));
    (void)partition_id_write(text, &id);
    ck_assert_str_eq(text, ID);
}
END_TEST

START_TEST(any_other_text_is_no_id)
{
    struct partition_id id;

    ck_assert(!partition_id_read((struct name){ID, strlen(ID) - 1}, &id));
    ck_assert(!partition_id_read((struct name){ID "0", strlen(ID) + 1}, &id));
    for (size_t i = 0; i < strlen(ID); i++) {
        char text[] = ID;

        text[i] = text[i] == '-' ? '0' : '-';
        ck_assert_msg(!partition_id_read((struct name){text, strlen(ID)}, &id), "%s", text);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hex");
    TCase *tests = tcase_create("hex");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, every_byte_is_a_digit_or_is_none);
    tcase_add_test(tests, every_byte_there_and_back);
    tcase_add_test(tests, an_id_there_and_back);
    tcase_add_test(tests, any_other_text_is_no_id);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
