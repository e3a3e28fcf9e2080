/*
 * The rows of kv; see kv.h for the contract. The operations on them are in kv_call.c.
 */
#include "kv.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"

#define FIRST_VERSION 90000

void kv_start(struct kv *kv)
{
    *kv = (struct kv){.last_version = FIRST_VERSION};
    pthread_mutex_init(&kv->lock, NULL);
}

void kv_row_free(struct kv_row *row)
{
    if (row != NULL) {
        free((void *)(uintptr_t)row->namespace.at);
        free((void *)(uintptr_t)row->key.at);
        free((void *)(uintptr_t)row->value.at);
        free(row);
    }
}

void kv_end(struct kv *kv)
{
    for (size_t i = 0; i < kv->count; i++) {
        kv_row_free(kv->rows[i]);
    }
    free(kv->rows);
    pthread_mutex_destroy(&kv->lock);
}

size_t kv_position(const struct kv *kv, struct slice namespace, struct slice key, bool *found)
{
    size_t low = 0;
    size_t high = kv->count;

    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = slice_compare(kv->rows[middle]->namespace, namespace);

        if (order == 0) {
            order = slice_compare(kv->rows[middle]->key, key);
        }
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct kv_row *kv_find_live(const struct kv *kv, struct slice namespace, struct slice key, int64_t now_us)
{
    bool found;
    size_t at = kv_position(kv, namespace, key, &found);

    return found && kv->rows[at]->expires_at_us > now_us ? kv->rows[at] : NULL;
}

struct kv_row *kv_replace(struct kv *kv, struct slice namespace, struct slice key, struct kv_row *row)
{
    bool found;
    size_t at = kv_position(kv, namespace, key, &found);
    struct kv_row *before = found ? kv->rows[at] : NULL;

    if (found && row != NULL) {
        kv->rows[at] = row;
    } else if (found) {
        memmove(&kv->rows[at], &kv->rows[at + 1], (kv->count - at - 1) * sizeof(struct kv_row *));
        kv->count--;
    } else if (row != NULL) {
        kv->rows = memory_room(kv->rows, kv->count, &kv->capacity, sizeof(struct kv_row *));
        memmove(&kv->rows[at + 1], &kv->rows[at], (kv->count - at) * sizeof(struct kv_row *));
        kv->rows[at] = row;
        kv->count++;
    }
    return before;
}

struct kv_row *kv_row_make(struct kv *kv, struct slice namespace, struct slice key, struct slice value, int64_t now_us,
                           int64_t expires_at_us)
{
    struct kv_row *row = memory_take(1, sizeof *row);

    /* Versions are unique and never reused; that they leave gaps keeps anybody from counting on the next one. */
    kv->last_version += 1 + now_us % 3;
    *row = (struct kv_row){slice_copy(namespace), slice_copy(key), slice_copy(value),
                           kv->last_version,      now_us,          expires_at_us};
    return row;
}

bool kv_take_token(struct kv_bucket *bucket, double rate, double burst)
{
    int64_t now_ms = clock_mono_ms();

    if (bucket->at_ms == 0) {
        bucket->tokens = burst;
    } else {
        bucket->tokens += (double)(now_ms - bucket->at_ms) * rate / 1000.0;
    }
    bucket->tokens = bucket->tokens > burst ? burst : bucket->tokens;
    bucket->at_ms = now_ms;
    if (bucket->tokens < 1.0) {
        return false;
    }
    bucket->tokens -= 1.0;
    return true;
}
