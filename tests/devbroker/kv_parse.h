/*
 * The operations of one kv call, parsed and checked.
 */
#ifndef DEVBROKER_KV_PARSE_H
#define DEVBROKER_KV_PARSE_H

#include "text.h"

enum kv_verb { KV_GET, KV_GET_MANY, KV_GET_PREFIX, KV_PUT, KV_PUT_IF_ABSENT, KV_DELETE };

struct kv_operation {
    enum kv_verb verb;
    size_t index; /* in the request */
    struct text namespace;
    struct text key; /* or the prefix */
    struct text *keys;
    size_t key_count;
    struct text value; /* jsonb's text */
    bool has_expect;
    int64_t expect;
    bool required;
    int64_t ttl_seconds; /* 0: for ever */
    int64_t limit;
    bool has_after;
    struct text after;
    struct text result; /* filled by the execution */
};

struct kv_request {
    struct kv_operation *operations;
    size_t count;
    size_t capacity;
    size_t key_count;
    bool writes;
    unsigned status;     /* of a refusal */
    const char *problem; /* NULL when there is none */
};

void kv_parse(struct slice body, struct kv_request *request);
void kv_request_free(struct kv_request *request);
const char *kv_verb_name(enum kv_verb verb);
bool kv_verb_writes(enum kv_verb verb);

#endif
