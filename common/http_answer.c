/*
 * Reading an answer as it arrives: see http_answer.h.
 *
 * A declared Content-Length is taken at its word for one allocation, within the limit and the budget: a body of 64 MiB
 * is then never copied while it grows, and one that can't fit ends before it is read. Without one the memory doubles.
 * What was declared and didn't come is curl's to find out.
 */
#include "common/http_answer.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/text.h"

#define FIRST_CAPACITY   65536u
#define HUGE_BODY        (8u * 1024 * 1024)
#define RETRY_AFTER_MOST INT64_C(86400) /* seconds: whoever asks for more is mistaken, and would stop a sink for good */

/* Whole digits, clamped to `most`; false for anything else. */
static bool read_digits(const char *text, size_t size, uint64_t most, uint64_t *out)
{
    uint64_t value = 0;
    if (size == 0) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        uint64_t digit = (uint64_t)(text[i] - '0');
        value = value > (most - digit) / 10 ? most : value * 10 + digit;
    }
    *out = value;
    return true;
}

static void keep_text(char *out, size_t room, const char *value, size_t size)
{
    if (size >= room || memchr(value, '\0', size) != NULL) {
        size = 0;
    }
    memcpy(out, value, size);
    out[size] = '\0';
}

static void keep_etag(struct http_response *response, const char *value, size_t size)
{
    if (size >= 2 && value[0] == '"' && value[size - 1] == '"') {
        value++;
        size -= 2;
    }
    keep_text(response->etag, sizeof response->etag, value, size);
}

static void answer_restart(struct http_answer *answer)
{
    struct http_response *response = &answer->response;
    response->etag[0] = '\0';
    response->region[0] = '\0';
    response->date[0] = '\0';
    response->content_length = 0;
    response->retry_after_ms = -1;
    answer->length_declared = false;
    answer->head_ended = false;
}

static bool is_name(const char *line, size_t size, const char *name)
{
    return size == strlen(name) && strncasecmp(line, name, size) == 0;
}

void http_answer_header(struct http_answer *answer, const char *line, size_t size)
{
    if (size >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        answer_restart(answer);
        return;
    }
    if (size > 0 && (line[0] == '\r' || line[0] == '\n')) {
        answer->head_ended = true;
        return;
    }
    const char *colon = memchr(line, ':', size);
    if (colon == NULL) {
        return;
    }
    size_t name = (size_t)(colon - line);
    const char *value = colon + 1;
    const char *end = line + size;
    while (value < end && text_is_blank(*value)) {
        value++;
    }
    while (end > value && text_is_blank(end[-1])) {
        end--;
    }
    size_t value_size = (size_t)(end - value);
    struct http_response *response = &answer->response;
    uint64_t number;
    if (is_name(line, name, "ETag")) {
        keep_etag(response, value, value_size);
    } else if (is_name(line, name, "x-amz-bucket-region")) {
        keep_text(response->region, sizeof response->region, value, value_size);
    } else if (is_name(line, name, "Date")) {
        keep_text(response->date, sizeof response->date, value, value_size);
    } else if (is_name(line, name, "Content-Length") && read_digits(value, value_size, UINT64_MAX, &number)) {
        response->content_length = number;
        answer->length_declared = true;
    } else if (is_name(line, name, "Retry-After") && read_digits(value, value_size, RETRY_AFTER_MOST, &number)) {
        response->retry_after_ms = (int64_t)number * 1000;
    }
}

/* The capacity to grow to for `need` bytes. */
static size_t next_capacity(const struct http_answer *answer, size_t capacity, size_t need)
{
    uint64_t declared = answer->response.content_length;
    if (answer->length_declared && declared >= need) {
        return (size_t)declared; /* at most the limit: looked at before */
    }
    size_t wanted = capacity < FIRST_CAPACITY ? FIRST_CAPACITY : capacity * 2;
    wanted = wanted < need ? need : wanted;
    return wanted > answer->body_limit ? answer->body_limit : wanted;
}

/* Page faults, one for 4 KiB, are the greater part of what receiving a large body costs: with huge pages it is half the
 * processor time. A body with a declared length fills its memory to the end, so no page of it is larger than its use.
 * Only advice: where the kernel doesn't take it, nothing is different. */
static void advise_huge_pages(const struct block *block)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = ((uintptr_t)block->body + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)block->body + block->body_capacity) / page * page;
    if (block->body_capacity >= HUGE_BODY && end > start) {
        (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
    }
}

static char *room_in_block(struct http_answer *answer, size_t need)
{
    struct block *block = answer->response.block;
    if (need > block->body_capacity) {
        size_t wanted = next_capacity(answer, block->body_capacity, need);
        int status = block_reserve_body(block, wanted, answer->may_exceed);
        if (status != QS_OK && !answer->length_declared) {
            status = block_reserve_body(block, need, answer->may_exceed); /* doubling may ask for more than comes */
        }
        if (status != QS_OK) {
            answer->stopped = (enum qs_error)status;
            return NULL;
        }
        if (answer->length_declared) {
            advise_huge_pages(block);
        }
    }
    return block->body + block->body_size;
}

static char *room_in_body(struct http_answer *answer, size_t need)
{
    struct http_response *response = &answer->response;
    if (need >= answer->body_capacity) {
        size_t wanted = next_capacity(answer, answer->body_capacity, need) + 1;
        char *body = realloc(response->body, wanted);
        if (body == NULL) {
            answer->stopped = QS_ERROR_NO_MEMORY;
            return NULL;
        }
        response->body = body;
        answer->body_capacity = wanted;
    }
    return response->body + response->body_size;
}

bool http_answer_body(struct http_answer *answer, const char *bytes, size_t size)
{
    struct http_response *response = &answer->response;
    size_t have = response->block != NULL ? response->block->body_size : response->body_size;
    bool too_long = answer->length_declared && response->content_length > answer->body_limit;
    if (too_long || size > answer->body_limit - have) {
        answer->stopped = QS_ERROR_BODY;
        return false;
    }
    char *room = response->block != NULL ? room_in_block(answer, have + size) : room_in_body(answer, have + size);
    if (room == NULL) {
        return false;
    }
    memcpy(room, bytes, size);
    if (response->block != NULL) {
        response->block->body_size += size;
    } else {
        response->body_size += size;
        response->body[response->body_size] = '\0';
    }
    return true;
}

bool http_answer_finish(struct http_answer *answer)
{
    struct http_response *response = &answer->response;
    if (response->block != NULL) {
        response->body_size = response->block->body_size;
        return true;
    }
    if (response->body == NULL) {
        response->body = calloc(1, 1);
    }
    return response->body != NULL;
}

void http_answer_free(struct http_answer *answer)
{
    free(answer->response.body);
    block_release(answer->response.block);
    answer->response.body = NULL;
    answer->response.block = NULL;
}
