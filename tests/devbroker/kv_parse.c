/*
 * Parsing kv calls: every 400 and 413 of spec 01, 1.4; see kv_parse.h.
 */
#include "kv_parse.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "kv.h"

#define OPERATION_LIMIT   256
#define KEY_LIMIT         1024
#define KEY_BYTES_LIMIT   512
#define VALUE_BYTES_LIMIT 65536
#define PAGE_LIMIT        1000
#define TTL_LIMIT         INT64_C(3155760000)

enum {
    MEMBER_OP,
    MEMBER_NS,
    MEMBER_KEY,
    MEMBER_KEYS,
    MEMBER_PREFIX,
    MEMBER_LIMIT,
    MEMBER_AFTER,
    MEMBER_VALUE,
    MEMBER_TTL,
    MEMBER_FOREVER,
    MEMBER_EXPECT,
    MEMBER_REQUIRED,
    MEMBER_COUNT
};

static const char *const member_names[MEMBER_COUNT] = {"op",    "ns",    "key",        "keys",    "prefix", "limit",
                                                       "after", "value", "ttlSeconds", "forever", "expect", "required"};

static const char *const verb_names[] = {"get", "getMany", "getPrefix", "put", "putIfAbsent", "delete"};
#define VERB_COUNT (sizeof verb_names / sizeof verb_names[0])

const char *kv_verb_name(enum kv_verb verb)
{
    return verb_names[verb];
}

bool kv_verb_writes(enum kv_verb verb)
{
    return verb >= KV_PUT;
}

static void refuse(struct kv_request *request, unsigned status, const char *problem)
{
    if (request->problem == NULL) {
        request->status = status;
        request->problem = problem;
    }
}

static void read_string(struct kv_request *request, struct slice value, const char *problem, struct text *to)
{
    if (!json_is_string(value) || !json_string(value, to) || (to->size > 0 && memchr(to->at, '\0', to->size) != NULL)) {
        refuse(request, 400, problem);
    }
}

static void read_key(struct kv_request *request, struct slice value, struct text *key)
{
    read_string(request, value, "key has to be a string", key);
    if (key->size > KEY_BYTES_LIMIT) {
        refuse(request, 413, "a key is longer than 512 bytes");
    }
    request->key_count++;
}

static void read_keys(struct kv_request *request, struct kv_operation *operation, struct slice keys)
{
    size_t capacity = 0;
    struct slice element;

    if (!json_is_array(keys)) {
        refuse(request, 400, "keys has to be an array");
        return;
    }
    while (json_next_element(&keys, &element) && request->problem == NULL) {
        operation->keys = memory_room(operation->keys, operation->key_count, &capacity, sizeof *operation->keys);
        operation->keys[operation->key_count] = (struct text){0};
        read_key(request, element, &operation->keys[operation->key_count++]);
    }
}

static void read_prefix(struct kv_request *request, struct kv_operation *operation, const struct slice *values)
{
    read_string(request, values[MEMBER_PREFIX], "prefix has to be a string", &operation->key);
    operation->limit = PAGE_LIMIT;
    if (values[MEMBER_LIMIT].at != NULL && (!json_integer(values[MEMBER_LIMIT], &operation->limit) ||
                                            operation->limit < 1 || operation->limit > PAGE_LIMIT)) {
        refuse(request, 400, "limit has to be 1 to 1000");
    }
    operation->has_after = values[MEMBER_AFTER].at != NULL && !json_is_null(values[MEMBER_AFTER]);
    if (operation->has_after) {
        read_string(request, values[MEMBER_AFTER], "after has to be a string", &operation->after);
    }
}

static void read_expiry(struct kv_request *request, struct kv_operation *operation, const struct slice *values)
{
    bool has_ttl = values[MEMBER_TTL].at != NULL;
    bool forever = json_is_true(values[MEMBER_FOREVER]);

    if (values[MEMBER_FOREVER].at != NULL && !forever && !slice_is(values[MEMBER_FOREVER], "false")) {
        refuse(request, 400, "forever has to be a boolean");
    }
    if (has_ttl == forever) {
        refuse(request, 400, "exactly one of ttlSeconds and forever is needed");
    }
    if (has_ttl && (!json_integer(values[MEMBER_TTL], &operation->ttl_seconds) || operation->ttl_seconds < 1 ||
                    operation->ttl_seconds > TTL_LIMIT)) {
        refuse(request, 400, "ttlSeconds has to be an integer above 0");
    }
}

static void read_value(struct kv_request *request, struct kv_operation *operation, struct slice value)
{
    if (value.at == NULL) {
        refuse(request, 400, "value is missing");
    } else if (!jsonb_add(value, &operation->value)) {
        refuse(request, 400, "value can't be stored as jsonb");
    } else if (operation->value.size > VALUE_BYTES_LIMIT) {
        refuse(request, 413, "a value is larger than 64 KiB");
    }
}

static void read_conditions(struct kv_request *request, struct kv_operation *operation, const struct slice *values)
{
    operation->has_expect = values[MEMBER_EXPECT].at != NULL;
    if (operation->has_expect && (!json_integer(values[MEMBER_EXPECT], &operation->expect) || operation->expect < 0)) {
        refuse(request, 400, "expect has to be an integer of at least 0");
    }
    if (operation->has_expect && operation->verb == KV_PUT_IF_ABSENT) {
        refuse(request, 400, "putIfAbsent takes no expect");
    }
    operation->required = json_is_true(values[MEMBER_REQUIRED]);
    if (values[MEMBER_REQUIRED].at != NULL && !operation->required && !slice_is(values[MEMBER_REQUIRED], "false")) {
        refuse(request, 400, "required has to be a boolean");
    }
}

static void read_verb(struct kv_request *request, struct slice value, enum kv_verb *verb)
{
    struct text name = {0};
    size_t i = 0;

    read_string(request, value, "op has to be a string", &name);
    while (i < VERB_COUNT && !slice_is(text_slice(&name), verb_names[i])) {
        i++;
    }
    text_free(&name);
    if (i == VERB_COUNT) {
        refuse(request, 400, "unknown op");
        return;
    }
    *verb = (enum kv_verb)i;
}

static void read_operation(struct kv_request *request, struct slice element, struct kv_operation *operation)
{
    struct slice values[MEMBER_COUNT];

    if (!json_members(element, member_names, values, MEMBER_COUNT)) {
        refuse(request, 400, "an operation has to be an object");
        return;
    }
    read_verb(request, values[MEMBER_OP], &operation->verb);
    read_string(request, values[MEMBER_NS], "ns has to be a string", &operation->namespace);
    if (operation->verb == KV_GET_MANY) {
        read_keys(request, operation, values[MEMBER_KEYS]);
    } else if (operation->verb == KV_GET_PREFIX) {
        read_prefix(request, operation, values);
    } else {
        read_key(request, values[MEMBER_KEY], &operation->key);
    }
    if (kv_verb_writes(operation->verb)) {
        request->writes = true;
        read_conditions(request, operation, values);
    }
    if (operation->verb == KV_PUT || operation->verb == KV_PUT_IF_ABSENT) {
        read_value(request, operation, values[MEMBER_VALUE]);
        read_expiry(request, operation, values);
    }
}

struct named_key {
    struct slice namespace;
    struct slice key;
};

static int named_key_compare(const void *left_key, const void *right_key)
{
    const struct named_key *left = left_key;
    const struct named_key *right = right_key;
    int order = slice_compare(left->namespace, right->namespace);

    return order != 0 ? order : slice_compare(left->key, right->key);
}

static void check_repeats(struct kv_request *request)
{
    struct named_key *keys = memory_take(request->key_count, sizeof *keys);
    size_t count = 0;

    for (size_t i = 0; i < request->count; i++) {
        const struct kv_operation *operation = &request->operations[i];
        struct slice namespace = text_slice(&operation->namespace);

        for (size_t k = 0; k < operation->key_count; k++) {
            keys[count++] = (struct named_key){namespace, text_slice(&operation->keys[k])};
        }
        if (operation->verb != KV_GET_MANY && operation->verb != KV_GET_PREFIX) {
            keys[count++] = (struct named_key){namespace, text_slice(&operation->key)};
        }
    }
    qsort(keys, count, sizeof *keys, named_key_compare);
    for (size_t i = 1; i < count; i++) {
        if (named_key_compare(&keys[i - 1], &keys[i]) == 0) {
            refuse(request, 400, "the same key twice in a batch");
        }
    }
    free(keys);
}

void kv_parse(struct slice body, struct kv_request *request)
{
    static const char *const names[] = {"operations"};
    struct slice operations;
    struct slice element;

    *request = (struct kv_request){0};
    if (!json_is_valid(body) || !json_members(body, names, &operations, 1) || !json_is_array(operations)) {
        refuse(request, 400, "the body has to be an object with operations");
        return;
    }
    while (request->problem == NULL && json_next_element(&operations, &element)) {
        if (request->count == OPERATION_LIMIT) {
            refuse(request, 400, "more than 256 operations");
            return;
        }
        request->operations =
            memory_room(request->operations, request->count, &request->capacity, sizeof *request->operations);
        request->operations[request->count] = (struct kv_operation){.index = request->count};
        read_operation(request, element, &request->operations[request->count++]);
    }
    if (request->key_count > KEY_LIMIT) {
        refuse(request, 400, "more than 1024 keys");
    }
    if (request->problem == NULL) {
        check_repeats(request);
    }
}

void kv_request_free(struct kv_request *request)
{
    for (size_t i = 0; i < request->count; i++) {
        struct kv_operation *operation = &request->operations[i];

        for (size_t k = 0; k < operation->key_count; k++) {
            text_free(&operation->keys[k]);
        }
        free(operation->keys);
        text_free(&operation->namespace);
        text_free(&operation->key);
        text_free(&operation->value);
        text_free(&operation->after);
        text_free(&operation->result);
    }
    free(request->operations);
}
