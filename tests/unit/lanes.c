#include "tests/unit/lanes.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const char payload[101] =
    "\"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456"
    "7\"";

void lanes_begin(struct lanes *lanes, enum setting_align align, int64_t target, int64_t max_window, int64_t guard)
{
    struct window_settings settings = {target * RECORD_WEIGHT, max_window * SECOND_US, guard * SECOND_US, align};
    memset(lanes, 0, sizeof *lanes);
    lanes->engine = window_create(&settings);
    lanes->answer_max = RECORDS_MAX;
}

void lanes_begin_earliest(struct lanes *lanes, enum setting_align align)
{
    lanes_begin(lanes, align, 1000, 60, 0);
    window_start_earliest(lanes->engine);
}

void lanes_end(struct lanes *lanes)
{
    window_destroy(lanes->engine);
    lanes->engine = NULL;
}

struct lane *lane_add(struct lanes *lanes, const char *name)
{
    ck_assert_uint_lt(lanes->count, LANES_MAX);
    struct lane *lane = &lanes->lanes[lanes->count++];
    memset(lane, 0, sizeof *lane);
    strcpy(lane->name, name);
    return lane;
}

void lane_push(struct lane *lane, int64_t ts)
{
    ck_assert_int_lt(lane->end, RECORDS_MAX);
    lane->ts[lane->end++] = ts;
}

struct lane *lane_fill(struct lanes *lanes, const char *name, int64_t count)
{
    struct lane *lane = lane_add(lanes, name);
    for (int64_t i = 0; i < count; i++)
        lane_push(lane, TEN + i * SECOND_US);
    return lane;
}

struct lane *lane_find(struct lanes *lanes, struct name name)
{
    for (size_t i = 0; i < lanes->count; i++)
        if (strlen(lanes->lanes[i].name) == name.size && memcmp(lanes->lanes[i].name, name.bytes, name.size) == 0)
            return &lanes->lanes[i];
    ck_abort_msg("the engine asked for a partition that never was");
    return NULL;
}

/* ---- pages ---- */

void lanes_page(struct lanes *lanes, struct window_pass *pass, int64_t safe_time)
{
    struct changed_partition partitions[LANES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < lanes->count; i++) {
        const struct lane *lane = &lanes->lanes[i];
        if (lane->hidden)
            continue;
        partitions[count] = (struct changed_partition){.name = {lane->name, strlen(lane->name)},
                                                       .last_offset = lane->end - 1,
                                                       .log_start = lane->log_start,
                                                       .last_write_at = {lane->end > 0 ? lane->ts[lane->end - 1] : 0},
                                                       .has_id = lane->has_id};
        memset(partitions[count].id.bytes, lane->id, sizeof partitions[count].id.bytes);
        count++;
    }
    window_pass_page(lanes->engine, pass, (struct broker_us){safe_time}, partitions, count);
}

void lanes_pass(struct lanes *lanes, bool full, int64_t safe_time)
{
    struct window_pass pass;
    bool has_since;
    struct broker_us since;
    window_pass_begin(lanes->engine, &pass, full, &has_since, &since);
    window_pass_call(lanes->engine, &pass);
    lanes_page(lanes, &pass, safe_time);
    window_pass_end(lanes->engine, &pass);
}

/* ---- answers ---- */

static void put_record(struct block *block, const struct lane *lane, int64_t offset)
{
    struct record *record = block_add_record(block);
    *record = (struct record){.offset = offset,
                              .ts = {lane->ts[offset]},
                              .transaction_id = "id",
                              .payload = payload,
                              .transaction_id_size = 2,
                              .transaction_id_raw = 2,
                              .payload_size = 100};
}

enum window_read_result lane_answer(struct lanes *lanes, const struct window_read *read)
{
    const struct lane *lane = lane_find(lanes, read->name);
    struct fetch_entry entry = {.high_watermark = lane->hidden ? 0 : lane->end,
                                .log_start = lane->hidden ? 0 : lane->log_start};
    struct block *block = block_create(lanes->budget, 0);
    lanes->reads++;
    lanes->probes += read->probe;
    if (read->offset < entry.log_start || read->offset > entry.high_watermark)
        entry.status = FETCH_OUT_OF_RANGE;
    for (int64_t offset = read->offset; entry.status == FETCH_OK && offset < entry.high_watermark; offset++) {
        if (block->record_count == (read->probe ? 1 : lanes->answer_max))
            break;
        if (!lane->missing[offset])
            put_record(block, lane, offset);
    }
    entry.record_count = block->record_count;
    enum window_read_result result = window_read_done(lanes->engine, read, &entry, block);
    block_release(block);
    return result;
}

enum window_read_result lanes_answer_empty(struct lanes *lanes, const struct window_read *read,
                                           enum fetch_entry_status status, int64_t log_start, int64_t watermark)
{
    struct fetch_entry entry = {.status = status, .log_start = log_start, .high_watermark = watermark};
    struct block *block = block_create(NULL, 0);
    enum window_read_result result = window_read_done(lanes->engine, read, &entry, block);
    block_release(block);
    return result;
}

bool lanes_read(struct lanes *lanes)
{
    struct window_read read;
    if (!window_next_read(lanes->engine, &read))
        return false;
    if (lane_answer(lanes, &read) != WINDOW_READ_DONE)
        window_read_ready(lanes->engine, read.partition);
    return true;
}

void lanes_read_all(struct lanes *lanes)
{
    for (int turn = 0; lanes_read(lanes); turn++)
        ck_assert_int_lt(turn, 100000);
}

/* ---- closing ---- */

uint64_t plan_check(const struct window_plan *plan)
{
    uint64_t records = 0;
    for (size_t r = 0; r < plan->run_count; r++) {
        const struct run *run = &plan->runs[r];
        int64_t last = -1;
        if (r > 0) {
            const struct name *before = &plan->runs[r - 1].partition;
            size_t shorter = before->size < run->partition.size ? before->size : run->partition.size;
            int order = memcmp(before->bytes, run->partition.bytes, shorter);
            ck_assert(order < 0 || (order == 0 && before->size < run->partition.size));
        }
        for (size_t e = 0; e < run->extent_count; e++)
            for (size_t i = 0; i < run->extents[e].count; i++) {
                const struct record *record = run->extents[e].block->records + run->extents[e].first + i;
                ck_assert_int_gt(record->offset, last);
                ck_assert_int_ge(record->ts.v, plan->start.v);
                ck_assert_int_lt(record->ts.v, plan->end.v);
                last = record->offset;
                records++;
            }
    }
    ck_assert_uint_eq(records, plan->records);
    return records;
}

bool lanes_can_close(struct lanes *lanes)
{
    struct window_plan plan;
    if (!window_close(lanes->engine, false, &plan))
        return false;
    window_plan_free(&plan);
    return true;
}

struct window_plan lanes_close(struct lanes *lanes, bool force)
{
    struct window_plan plan;
    ck_assert(window_close(lanes->engine, force, &plan));
    plan_check(&plan);
    return plan;
}
