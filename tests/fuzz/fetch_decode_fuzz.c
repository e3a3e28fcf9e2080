/*
 * Any bytes as a fetch answer, and as JSON: nothing crashes or reads too far, the forms of the scanner agree, and what
 * is decoded keeps what fetch_decode.h promises. The corpus is answers to the two entries asked for here.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/fetch_decode.h"
#include "common/json_scan_inner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct json_scan scan;

static void expect(bool right)
{
    if (!right) {
        abort();
    }
}

/* All forms of the scanner on the text from its first bracket and its first quote on. */
static void compare_forms(const char *text, size_t size)
{
    const char *end = text + size;
    const char *start = text;
    bool flags[3] = {false};
    while (start < end && *start != '{' && *start != '[' && *start != '"') {
        start++;
    }
    if (start == end) {
        return;
    }
    bool is_string = *start == '"';
    const char *plain = is_string ? json_scan_rest_plain(start + 1, end, &flags[0])
                                  : json_scan_container_plain(&scan, start, end, &flags[0]);
#ifdef __x86_64__
    const char *sse2 = is_string ? json_scan_rest_sse2(start + 1, end, &flags[1])
                                 : json_scan_container_sse2(&scan, start, end, &flags[1]);
    expect(sse2 == plain && (plain == NULL || flags[1] == flags[0]));
    if (json_scan_has_avx2()) {
        const char *avx2 = is_string ? json_scan_rest_avx2(start + 1, end, &flags[2])
                                     : json_scan_container_avx2(&scan, start, end, &flags[2]);
        expect(avx2 == plain && (plain == NULL || flags[2] == flags[0]));
    }
#endif
    if (plain != NULL && is_string) {
        char *copy = malloc(size);
        size_t raw;
        expect(copy != NULL);
        size_t inside = (size_t)(plain - start) - 2;
        memcpy(copy, start + 1, inside);
        size_t spelled = json_respell(copy, inside, &raw);
        expect(spelled <= inside && json_unescape(copy, spelled, copy) == raw &&
               json_spelled_size(copy, raw) == spelled);
        free(copy);
    }
}

static void check_entry(const struct block *block, const struct fetch_entry *entry, int64_t asked)
{
    const struct record *before = NULL;
    expect(entry->first_record + entry->record_count <= block->record_count);
    for (size_t i = 0; i < entry->record_count; i++) {
        const struct record *record = &block->records[entry->first_record + i];
        struct json_value value;
        const char *end = record->payload + record->payload_size;
        expect(record->offset >= asked &&
               (before == NULL || (before->offset < record->offset && before->ts.v <= record->ts.v)));
        expect(record->payload >= block->body && end <= block->body + block->body_size);
        expect(record->transaction_id >= block->body && record->transaction_id_raw <= record->transaction_id_size &&
               record->transaction_id + record->transaction_id_size <= block->body + block->body_size);
        expect(json_scan_value(&scan, record->payload, end, &value) == end);
        expect(value.line_breaks == ((record->flags & RECORD_LINE_BREAKS) != 0));
        expect((record->flags & RECORD_PAYLOAD_NULL) == 0 || memcmp(record->payload, "null", 4) == 0);
        before = record;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct fetch_request_entry asked[] = {
        {.queue = {"orders", 6}, .partition = {"cust-0420", 9}, .offset = 1400},
        {.queue = {"a/b", 3}, .partition = {"", 0}, .offset = 0},
    };
    struct fetch_entry entries[2];
    struct error error;
    struct budget budget = {.limit = 1 << 16};
    struct block *block = block_create(&budget, 0);
    expect(block != NULL && block_reserve_body(block, size, true) == QS_OK);
    if (size > 0) {
        memcpy(block->body, data, size);
    }
    block->body_size = size;
    compare_forms((const char *)data, size);
    int status = fetch_decode(&scan, block, asked, 2, false, entries, &error);
    if (status == QS_OK) {
        block_trim(block);
        check_entry(block, &entries[0], asked[0].offset);
        check_entry(block, &entries[1], asked[1].offset);
        expect(entries[0].record_count + entries[1].record_count == block->record_count);
    } else {
        expect((status == QS_ERROR_BODY || status == QS_ERROR_NO_ROOM) && (int)error.code == status);
    }
    block_release(block);
    expect(budget.used == 0);
    return 0;
}
