/*
 * ListObjectsV2, one page a call.
 *
 * Keys are asked for URL-encoded (encoding-type=url): XML 1.0 can't hold every byte that a key can. They are decoded
 * where the answer says that it did so, since a gateway may not; a plus sign is a space there, as in a form.
 *
 * Source: Amazon S3 API Reference, ListObjectsV2.
 */
#include <stdlib.h>
#include <string.h>

#include "common/hex.h"
#include "common/memory.h"
#include "common/s3_internal.h"
#include "common/s3_xml.h"

#define PAGE_SIZE "1000"

struct page {
    struct listed_object *objects; /* keys are owned */
    size_t count;
    size_t capacity;
    char *key; /* of the <Contents> that is being read; owned */
    uint64_t size;
    char *next; /* owned */
    bool truncated;
    bool encoded;
    bool is_list;
};

static void set_text(char **target, const char *text, size_t size)
{
    free(*target);
    *target = memory_copy(text, size);
}

static void end_contents(struct page *page)
{
    if (page->key == NULL) {
        return;
    }
    page->objects = memory_grow(page->objects, &page->capacity, page->count + 1, sizeof *page->objects);
    page->objects[page->count++] = (struct listed_object){.key = page->key, .size = page->size};
    page->key = NULL;
    page->size = 0;
}

static void take_element(void *argument, const char *path, const char *text, size_t size)
{
    static const char root[] = "ListBucketResult";
    struct page *page = argument;

    if (strncmp(path, root, sizeof root - 1) != 0) {
        return;
    }
    const char *name = path + sizeof root - 1;
    if (strcmp(name, "/Contents/Key") == 0) {
        set_text(&page->key, text, size);
    } else if (strcmp(name, "/Contents/Size") == 0) {
        page->size = strtoull(text, NULL, 10);
    } else if (strcmp(name, "/Contents") == 0) {
        end_contents(page);
    } else if (strcmp(name, "/IsTruncated") == 0) {
        page->truncated = strcmp(text, "true") == 0;
    } else if (strcmp(name, "/NextContinuationToken") == 0) {
        set_text(&page->next, text, size);
    } else if (strcmp(name, "/EncodingType") == 0) {
        page->encoded = strcmp(text, "url") == 0;
    } else if (name[0] == '\0') {
        page->is_list = true;
    }
}

/* In place. A percent sign that two hex digits don't follow stays. */
static void decode(char *text)
{
    char *out = text;

    for (const char *at = text; *at != '\0'; at++) {
        int byte = *at == '%' ? hex_byte(at + 1) : -1;
        if (byte >= 0) {
            *out++ = (char)byte;
            at += 2;
        } else {
            *out++ = (char)(*at == '+' ? ' ' : *at);
        }
    }
    *out = '\0';
}

static void free_page(struct page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        free((char *)(uintptr_t)page->objects[i].key);
    }
    free(page->objects);
    free(page->key);
    free(page->next);
}

static void finish_list(struct store_call *call, struct error *error, struct http_response *response)
{
    struct page page = {0};

    if (error->code == QS_OK && !(s3_xml_read(response->body, response->body_size, take_element, &page) &&
                                  page.is_list && (!page.truncated || page.next != NULL))) {
        error_set(error, QS_ERROR_BODY, "list %s: the answer isn't a list (check QUEEN_S3_ENDPOINT)", call->key);
        error->status = response->status;
    }
    if (error->code != QS_OK) {
        call->tell.list(call->argument, error, NULL, 0, NULL);
    } else {
        for (size_t i = 0; page.encoded && i < page.count; i++) {
            decode((char *)(uintptr_t)page.objects[i].key);
        }
        call->tell.list(call->argument, error, page.objects, page.count, page.truncated ? page.next : NULL);
    }
    free_page(&page);
}

struct store_call *s3_list(struct object_store *store, const char *prefix, const char *after_token,
                           store_list_done *done, void *argument)
{
    struct store_call *call = s3_call_new(store, STORE_LIST, prefix, argument);
    const struct sigv4_query query[] = {{"continuation-token", after_token != NULL ? after_token : ""},
                                        {"encoding-type", "url"},
                                        {"list-type", "2"},
                                        {"max-keys", PAGE_SIZE},
                                        {"prefix", prefix}};
    size_t skipped = after_token != NULL ? 0 : 1;
    struct s3_request request = {
        .method = "GET", .query = query + skipped, .query_count = sizeof query / sizeof *query - skipped};

    call->finish = finish_list;
    call->tell.list = done;
    return s3_call_start(call, &request, S3_XML_LIMIT, S3_STALL_MS);
}
