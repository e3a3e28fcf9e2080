/*
 * Reading the small answers of the Queen API (spec 1.3 to 1.5). What is read points into the body, which is written to
 * and must stay as long as the reading does. Each call returns 0, QS_ERROR_BODY with what was wrong where, or
 * QS_ERROR_NO_MEMORY; a reading is to be freed either way, and zeroed before.
 */
#ifndef COMMON_QUEEN_ANSWER_H
#define COMMON_QUEEN_ANSWER_H

#include "common/json_walk.h"

/* Proves that the body is one JSON value and nothing else. */
int queen_answer_scan(struct json_scan *scan, char *body, size_t size, struct json_text *whole, struct error *error);

struct changed_reading {
    struct changed_answer answer;
    struct changed_entry *entries;
    struct changed_partition *partitions; /* of all entries, one after the other */
    size_t partition_count;
    size_t partition_capacity;
};

/* asked: the queues of the request's entries. */
int queen_read_changed(struct json_scan *scan, char *body, size_t size, const struct name *asked, size_t count,
                       struct changed_reading *reading, struct error *error);
void changed_reading_free(struct changed_reading *reading);

struct kv_reading {
    struct kv_answer answer;
    struct kv_result *results;
    struct kv_row *rows; /* of all results, one after the other */
    size_t row_count;
    size_t row_capacity;
    const char **missing; /* of the result that is being read */
    size_t missing_count;
    size_t missing_capacity;
    cJSON *documents; /* an array of all values: its children outlive nothing but the reading */
};

/* asked: kind, required and keys of the request's operations; the rest isn't looked at. */
int queen_read_kv(struct json_scan *scan, char *body, size_t size, const struct kv_operation *asked, size_t count,
                  struct kv_reading *reading, struct error *error);
/* Whether a write of this answer lost. */
bool kv_reading_lost(const struct kv_reading *reading, const struct kv_operation *asked);
void kv_reading_free(struct kv_reading *reading);

struct queues_reading {
    struct queues_answer answer;
    struct name *queues;
    size_t capacity;
};

int queen_read_queues(struct json_scan *scan, char *body, size_t size, struct queues_reading *reading,
                      struct error *error);
void queues_reading_free(struct queues_reading *reading);

/* Room for one more element of an array that an answer makes as long as it likes; false if out of memory. */
bool queen_answer_grow(void **array, size_t *capacity, size_t count, size_t element);

#endif
