/*
 * Decodes a fetch answer (spec 1.2) in place: see fetch_decode.h.
 *
 * Today's broker spells every record `{"offset":…,"transactionId":"…","payload":…,"ts":"…"}` with no blanks, so each
 * member is first looked for in that spelling, where it is expected. Whatever isn't there is left to the general loop,
 * which takes members in any order and spelling and goes on from the very byte at which the expected ones stopped:
 * nothing is scanned twice, and a broker that adds a key some day costs a little time, not a rewrite.
 *
 * Strings that hold escapes are unescaped or respelled where they stand in the body; neither is ever longer than what it
 * replaces, and the decoder never looks back. Payloads are not touched.
 *
 * A known key that comes twice in one object is refused: which one counts is anybody's guess, and a guess is not data.
 */
#include "common/fetch_decode.h"

#include <string.h>

/* The shortest record there can be, with an offset of one digit. */
#define RECORD_SIZE_MIN (sizeof "{\"offset\":0,\"payload\":0,\"ts\":\"2026-09-04T10:03:41Z\"}" - 1)

struct decoder {
    struct json_scan *scan;
    struct block *block;
    char *at;
    const char *end;
    bool may_exceed;
    struct error *error;
    int status;          /* of the first failure: functions that return false have set it */
    int64_t next_offset; /* the least that the next record of this entry may have */
    struct broker_us ts; /* of the record before, and its text; text_size 0: none yet */
    const char *ts_text;
    size_t ts_size;
    int64_t ts_floor; /* in this entry */
};

struct text {
    char *bytes;
    size_t size;
    bool escaped;
};

/* ---- the smallest steps ---- */

static bool fail_at(struct decoder *d, const char *where, const char *expected)
{
    d->status = error_set(d->error, QS_ERROR_BODY, "fetch answer of %zu bytes, byte %zu: expected %s",
                          d->block->body_size, (size_t)(where - d->block->body), expected);
    return false;
}

static bool fail(struct decoder *d, const char *expected)
{
    return fail_at(d, d->at, expected);
}

/* Most often there is none. */
static inline void skip_blank(struct decoder *d)
{
    if (d->at < d->end && (unsigned char)*d->at <= ' ') {
        d->at += json_skip_blank(d->at, d->end) - d->at;
    }
}

/* Moves on where exactly these bytes come next. */
static inline bool take(struct decoder *d, const char *bytes, size_t size)
{
    if ((size_t)(d->end - d->at) < size || memcmp(d->at, bytes, size) != 0) {
        return false;
    }
    d->at += size;
    return true;
}

#define TAKE(d, literal) take(d, "" literal, sizeof(literal) - 1)

/* The same with blanks before it. */
static bool need(struct decoder *d, char c, const char *expected)
{
    skip_blank(d);
    if (d->at == d->end || *d->at != c) {
        return fail(d, expected);
    }
    d->at++;
    return true;
}

static bool read_value(struct decoder *d, struct json_value *value)
{
    const char *after = json_scan_value(d->scan, d->at, d->end, value);
    if (after == NULL) {
        return fail(d, "a JSON value");
    }
    d->at += after - d->at;
    return true;
}

static bool skip_value(struct decoder *d)
{
    struct json_value ignored;
    return read_value(d, &ignored);
}

static bool read_string(struct decoder *d, struct text *text, const char *expected)
{
    const char *bytes;
    const char *after = json_scan_string(d->at, d->end, &bytes, &text->size, &text->escaped);
    if (after == NULL) {
        return fail(d, expected);
    }
    text->bytes = d->at + (bytes - d->at);
    d->at += after - d->at;
    return true;
}

/* As read_string, as what it means. */
static bool read_unescaped(struct decoder *d, struct text *text, const char *expected)
{
    if (!read_string(d, text, expected)) {
        return false;
    }
    if (text->escaped) {
        text->size = json_unescape(text->bytes, text->size, text->bytes);
    }
    return true;
}

static bool text_is(const struct text *text, const char *bytes, size_t size)
{
    return text->size == size && memcmp(text->bytes, bytes, size) == 0;
}

/* An integer from 0 to the largest int64, spelled as one: no fraction, no exponent. */
static bool read_integer(struct decoder *d, int64_t *value)
{
    static const char expected[] = "an integer from 0 to 9223372036854775807";
    const char *start = d->at;
    int64_t sum = 0;
    for (; d->at < d->end && *d->at >= '0' && *d->at <= '9'; d->at++) {
        if (__builtin_mul_overflow(sum, 10, &sum) || __builtin_add_overflow(sum, *d->at - '0', &sum)) {
            return fail_at(d, start, expected);
        }
    }
    bool leading_zero = d->at - start > 1 && *start == '0';
    bool goes_on = d->at < d->end && (*d->at == '.' || *d->at == 'e' || *d->at == 'E');
    if (d->at == start || leading_zero || goes_on) {
        return fail_at(d, start, expected);
    }
    *value = sum;
    return true;
}

/* ---- objects in general ---- */

/* The keys of one kind of object, in the order of its enum; the last is NULL. */
typedef const char *const key_names[];

/* Where an object's members are read: `seen` has a bit for each known key that has come. */
struct members {
    const char *const *names;
    unsigned seen;
    bool begun; /* a member has been read: the next comes behind a comma */
};

enum { KEY_UNKNOWN = -1, KEY_END = -2, KEY_FAILED = -3 };

static int find_key(const struct members *members, const struct text *key)
{
    for (int i = 0; members->names[i] != NULL; i++) {
        if (text_is(key, members->names[i], strlen(members->names[i]))) {
            return i;
        }
    }
    return KEY_UNKNOWN;
}

static bool mark_seen(struct decoder *d, struct members *members, int key, const char *where)
{
    unsigned bit = 1u << key;
    if ((members->seen & bit) != 0) {
        return fail_at(d, where, "no key twice in one object");
    }
    members->seen |= bit;
    return true;
}

/* Goes on to the value of the next member, or behind the object's end. */
static int next_member(struct decoder *d, struct members *members)
{
    skip_blank(d);
    if (d->at < d->end && *d->at == '}') {
        d->at++;
        return KEY_END;
    }
    if (members->begun && !need(d, ',', "a comma or }")) {
        return KEY_FAILED;
    }
    members->begun = true;
    skip_blank(d);
    const char *where = d->at;
    struct text text;
    if (!read_unescaped(d, &text, "a key") || !need(d, ':', "a colon")) {
        return KEY_FAILED;
    }
    skip_blank(d);
    int key = find_key(members, &text);
    if (key >= 0 && !mark_seen(d, members, key, where)) {
        return KEY_FAILED;
    }
    return key;
}

/* Before each element of an array: 1 where there is one, 0 behind the array's end, -1 failed. */
static int next_element(struct decoder *d, bool *begun)
{
    skip_blank(d);
    if (d->at < d->end && *d->at == ']') {
        d->at++;
        return 0;
    }
    if (*begun && !need(d, ',', "a comma or ]")) {
        return -1;
    }
    *begun = true;
    skip_blank(d);
    return 1;
}

/* ---- records ---- */

enum { RECORD_OFFSET, RECORD_ID, RECORD_PAYLOAD, RECORD_TS, RECORD_KEYS };

static key_names record_keys = {"offset", "transactionId", "payload", "ts", NULL};

static bool read_offset(struct decoder *d, struct record *record)
{
    const char *where = d->at;
    if (!read_integer(d, &record->offset)) {
        return false;
    }
    if (record->offset < d->next_offset) {
        return fail_at(d, where, "offsets that rise from the one asked for");
    }
    return true;
}

static bool read_id(struct decoder *d, struct record *record)
{
    if (TAKE(d, "null")) {
        return true; /* "", as where it is missing */
    }
    struct text text;
    const char *where = d->at;
    if (!read_string(d, &text, "a string or null as transactionId")) {
        return false;
    }
    size_t raw = text.size;
    if (text.escaped) {
        text.size = json_respell(text.bytes, text.size, &raw);
    }
    if (text.size > UINT32_MAX) {
        return fail_at(d, where, "a transactionId below 4 GiB");
    }
    record->transaction_id = text.bytes;
    record->transaction_id_size = (uint32_t)text.size;
    record->transaction_id_raw = (uint32_t)raw; /* never larger than its spelling */
    return true;
}

static bool read_payload(struct decoder *d, struct record *record)
{
    struct json_value value;
    const char *where = d->at;
    if (!read_value(d, &value)) {
        return false;
    }
    if (value.size > UINT32_MAX) {
        return fail_at(d, where, "a payload below 4 GiB");
    }
    record->payload = value.start;
    record->payload_size = (uint32_t)value.size;
    if (value.line_breaks) {
        record->flags |= RECORD_LINE_BREAKS;
    }
    if (*value.start == 'n') {
        record->flags |= RECORD_PAYLOAD_NULL;
    }
    return true;
}

/* All records of a segment share one stamp (spec 1.1): most are the same text as the one before. */
static bool read_ts(struct decoder *d, struct record *record)
{
    const char *where = d->at;
    size_t left = (size_t)(d->end - d->at);
    if (d->ts_size != 0 && d->ts_size < left && memcmp(d->at, d->ts_text, d->ts_size) == 0) {
        d->at += d->ts_size;
    } else {
        struct text text;
        if (!read_unescaped(d, &text, "a time as ts")) {
            return false;
        }
        if (!clock_parse_broker(text.bytes, text.size, &d->ts)) {
            return fail_at(d, where, "a time like 2026-09-04T10:03:41.918204Z");
        }
        d->ts_text = where;
        d->ts_size = text.escaped ? 0 : (size_t)(d->at - where); /* both quotes with it */
    }
    if (d->ts.v < d->ts_floor) {
        return fail_at(d, where, "no ts below the one before");
    }
    record->ts = d->ts;
    return true;
}

static bool read_record_member(struct decoder *d, int key, struct record *record)
{
    switch (key) {
    case RECORD_OFFSET: return read_offset(d, record);
    case RECORD_ID: return read_id(d, record);
    case RECORD_PAYLOAD: return read_payload(d, record);
    case RECORD_TS: return read_ts(d, record);
    default: return skip_value(d);
    }
}

/* The members in the spelling and order of today, as far as they go. */
static bool read_expected_members(struct decoder *d, struct members *members, struct record *record)
{
    static const struct {
        const char *spelling;
        size_t size;
    } expected[] = {
        [RECORD_OFFSET] = {"\"offset\":", 9},
        [RECORD_ID] = {",\"transactionId\":", 17},
        [RECORD_PAYLOAD] = {",\"payload\":", 11},
        [RECORD_TS] = {",\"ts\":", 6},
    };
    for (int key = 0; key < RECORD_KEYS && take(d, expected[key].spelling, expected[key].size); key++) {
        members->seen |= 1u << key;
        members->begun = true;
        skip_blank(d);
        if (!read_record_member(d, key, record)) {
            return false;
        }
    }
    return true;
}

static bool read_record(struct decoder *d, struct record *record)
{
    const char *where = d->at;
    struct members members = {.names = record_keys};
    record->transaction_id = d->block->body; /* "" until it is read */
    if (!need(d, '{', "a record") || !read_expected_members(d, &members, record)) {
        return false;
    }
    int key;
    while ((key = next_member(d, &members)) != KEY_END) {
        if (key == KEY_FAILED || !read_record_member(d, key, record)) {
            return false;
        }
    }
    const unsigned needed = 1u << RECORD_OFFSET | 1u << RECORD_PAYLOAD | 1u << RECORD_TS;
    if ((members.seen & needed) != needed) {
        return fail_at(d, where, "a record with offset, payload and ts");
    }
    if (record->offset == INT64_MAX) {
        return fail_at(d, where, "an offset that another can follow");
    }
    d->next_offset = record->offset + 1;
    d->ts_floor = record->ts.v;
    return true;
}

/* Room for one more. How many are to come is guessed from the bytes that those there took; where the budget has no room
 * for the guess, a few at a time. */
static bool reserve_record(struct decoder *d)
{
    struct block *block = d->block;
    size_t count = block->record_count;
    if (count < block->record_capacity) {
        return true;
    }
    size_t left = (size_t)(d->end - d->at);
    size_t most = left / RECORD_SIZE_MIN + 1;
    size_t few = count / 8 + 16;
    size_t guess = count == 0 ? few : left / ((size_t)(d->at - block->body) / count + 1) + few;
    if (guess > most) {
        guess = most;
    }
    int status = block_reserve_records(block, count + guess, d->may_exceed);
    if (status == QS_ERROR_NO_ROOM && guess > few) {
        status = block_reserve_records(block, count + few, d->may_exceed);
    }
    if (status != QS_OK) {
        d->status = error_set(d->error, (enum qs_error)status, "fetch answer of %zu bytes: %s for its records",
                              block->body_size, status == QS_ERROR_NO_ROOM ? "no room in the budget" : "out of memory");
        return false;
    }
    return true;
}

static bool read_records(struct decoder *d)
{
    if (TAKE(d, "null")) {
        return true;
    }
    if (!need(d, '[', "an array as records")) {
        return false;
    }
    bool begun = false;
    int more;
    while ((more = next_element(d, &begun)) == 1) {
        if (!reserve_record(d) || !read_record(d, block_add_record(d->block))) {
            return false;
        }
    }
    return more == 0;
}

/* ---- entries ---- */

enum { ENTRY_QUEUE, ENTRY_PARTITION, ENTRY_RECORDS, ENTRY_ERROR, ENTRY_HIGH_WATERMARK, ENTRY_LOG_START };

static key_names entry_keys = {"queue", "partition", "records", "error", "highWatermark", "logStartOffset", NULL};

static bool read_name(struct decoder *d, const struct name *asked, const char *expected)
{
    struct text text;
    const char *where = d->at;
    if (!read_unescaped(d, &text, expected)) {
        return false;
    }
    if (text.size != asked->size || (text.size != 0 && memcmp(text.bytes, asked->bytes, text.size) != 0)) {
        return fail_at(d, where, expected);
    }
    return true;
}

static bool read_status(struct decoder *d, enum fetch_entry_status *status)
{
    static const char below_or_above[] = "OFFSET_OUT_OF_RANGE";
    static const char unknown[] = "UNKNOWN_TOPIC_OR_PARTITION";
    if (TAKE(d, "null")) {
        return true;
    }
    struct text text;
    if (!read_unescaped(d, &text, "a string or null as error")) {
        return false;
    }
    if (text_is(&text, below_or_above, sizeof below_or_above - 1)) {
        *status = FETCH_OUT_OF_RANGE;
    } else if (text_is(&text, unknown, sizeof unknown - 1)) {
        *status = FETCH_UNKNOWN_QUEUE;
    } else {
        *status = FETCH_PASSING;
    }
    return true;
}

static bool read_entry_member(struct decoder *d, int key, const struct fetch_request_entry *asked,
                              struct fetch_entry *entry)
{
    switch (key) {
    case ENTRY_QUEUE: return read_name(d, &asked->queue, "the queue that was asked for");
    case ENTRY_PARTITION: return read_name(d, &asked->partition, "the partition that was asked for");
    case ENTRY_RECORDS: return read_records(d);
    case ENTRY_ERROR: return read_status(d, &entry->status);
    case ENTRY_HIGH_WATERMARK: return read_integer(d, &entry->high_watermark);
    case ENTRY_LOG_START: return read_integer(d, &entry->log_start);
    default: return skip_value(d);
    }
}

/* Names are always needed; an entry that carries an error may leave out the rest. */
static bool read_entry(struct decoder *d, const struct fetch_request_entry *asked, struct fetch_entry *entry)
{
    const char *where = d->at;
    struct members members = {.names = entry_keys};
    *entry = (struct fetch_entry){.first_record = d->block->record_count};
    d->next_offset = asked->offset;
    d->ts_floor = INT64_MIN;
    if (!need(d, '{', "an entry")) {
        return false;
    }
    int key;
    while ((key = next_member(d, &members)) != KEY_END) {
        if (key == KEY_FAILED || !read_entry_member(d, key, asked, entry)) {
            return false;
        }
    }
    unsigned needed = 1u << ENTRY_QUEUE | 1u << ENTRY_PARTITION;
    if (entry->status == FETCH_OK) {
        needed |= 1u << ENTRY_RECORDS | 1u << ENTRY_HIGH_WATERMARK | 1u << ENTRY_LOG_START;
    }
    if ((members.seen & needed) != needed) {
        return fail_at(d, where, "an entry with queue, partition, records, highWatermark and logStartOffset");
    }
    entry->record_count = d->block->record_count - entry->first_record;
    return true;
}

static bool read_entries(struct decoder *d, const struct fetch_request_entry *asked, size_t count,
                         struct fetch_entry *entries)
{
    if (!need(d, '[', "an array as entries")) {
        return false;
    }
    bool begun = false;
    int more;
    size_t read = 0;
    while ((more = next_element(d, &begun)) == 1) {
        if (read == count) {
            return fail(d, "no more entries than were asked for");
        }
        if (!read_entry(d, &asked[read], &entries[read])) {
            error_prefix(d->error, "entry %zu of %zu", read + 1, count);
            return false;
        }
        read++;
    }
    if (more == 0 && read < count) {
        return fail(d, "as many entries as were asked for");
    }
    return more == 0;
}

static key_names answer_keys = {"entries", NULL};

static bool read_answer(struct decoder *d, const struct fetch_request_entry *asked, size_t count,
                        struct fetch_entry *entries)
{
    struct members members = {.names = answer_keys};
    if (!need(d, '{', "an object")) {
        return false;
    }
    int key;
    while ((key = next_member(d, &members)) != KEY_END) {
        if (key == KEY_FAILED || !(key == 0 ? read_entries(d, asked, count, entries) : skip_value(d))) {
            return false;
        }
    }
    skip_blank(d);
    if (d->at != d->end) {
        return fail(d, "nothing behind the answer");
    }
    return members.seen != 0 || fail(d, "an answer with entries");
}

int fetch_decode(struct json_scan *scan, struct block *block, const struct fetch_request_entry *asked, size_t count,
                 bool may_exceed, struct fetch_entry *entries, struct error *error)
{
    struct decoder decoder = {
        .scan = scan,
        .block = block,
        .may_exceed = may_exceed,
        .error = error,
    };
    if (block->body_size == 0) {
        return error_set(error, QS_ERROR_BODY, "fetch answer of 0 bytes: expected an object");
    }
    decoder.at = block->body;
    decoder.end = block->body + block->body_size;
    return read_answer(&decoder, asked, count, entries) ? QS_OK : decoder.status;
}
