/*
 * The four multipart calls.
 *
 * Complete is the odd one. Its 200 can come before the work is done, followed by white space that keeps the connection
 * alive, and the body then says whether it worked: only a <CompleteMultipartUploadResult> means that the object is
 * there, and an <Error> is classified as if its status had said so. A service that sends no such white space can be
 * silent for minutes while it puts a large object together, so its patience is longer.
 *
 * The ETag of a whole is `<32 hex>-<n>`: the MD5 of its parts' MD5s, and how many there are. The n is compared with what
 * was sent. Some gateways answer with another shape; that is noted at debug (spec 3.9).
 *
 * Sources: Amazon S3 API Reference, CreateMultipartUpload, UploadPart, CompleteMultipartUpload, AbortMultipartUpload.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/s3_internal.h"
#include "common/s3_xml.h"

#define COMPLETE_STALL_MS 300000
#define NUMBER_SIZE       24

/* What of an answer is wanted: the text of one element, and whether its root is the right one. */
struct wanted {
    const char *root;
    const char *path;
    char *text; /* owned */
    bool found_root;
};

static void take_element(void *argument, const char *path, const char *text, size_t size)
{
    struct wanted *wanted = argument;

    if (strcmp(path, wanted->path) == 0) {
        free(wanted->text);
        wanted->text = memory_copy(text, size);
    } else if (strcmp(path, wanted->root) == 0) {
        wanted->found_root = true;
    }
}

static bool read_wanted(const struct http_response *response, struct wanted *wanted)
{
    return s3_xml_read(response->body, response->body_size, take_element, wanted) && wanted->found_root;
}

static void finish_create(struct store_call *call, struct error *error, struct http_response *response)
{
    struct wanted wanted = {.root = "InitiateMultipartUploadResult", .path = "InitiateMultipartUploadResult/UploadId"};

    if (error->code == QS_OK && !(read_wanted(response, &wanted) && wanted.text != NULL && wanted.text[0] != '\0')) {
        error_set(error, QS_ERROR_BODY, "multipart_create %s: the answer names no upload", call->key);
        error->status = response->status;
    }
    call->tell.created(call->argument, error, error->code == QS_OK ? wanted.text : NULL);
    free(wanted.text);
}

struct store_call *s3_multipart_create(struct object_store *store, const char *key, const char *content_type,
                                       store_created_done *done, void *argument)
{
    struct store_call *call = s3_call_new(store, STORE_MULTIPART_CREATE, key, argument);
    const struct sigv4_query query[] = {{"uploads", ""}};
    struct s3_request request = {
        .method = "POST", .key = key, .query = query, .query_count = 1, .content_type = content_type, .encrypt = true};

    call->finish = finish_create;
    call->tell.created = done;
    return s3_call_start(call, &request, S3_XML_LIMIT, S3_STALL_MS);
}

static void finish_part(struct store_call *call, struct error *error, struct http_response *response)
{
    if (error->code == QS_OK && response->etag[0] == '\0') {
        error_set(error, QS_ERROR_BODY, "multipart_part %s: the answer has no ETag", call->key);
        error->status = response->status;
    } else if (error->code == QS_OK) {
        s3_check_etag(call, response->etag, error);
    }
    call->tell.part(call->argument, error, error->code == QS_OK ? response->etag : NULL);
}

struct store_call *s3_multipart_part(struct object_store *store, const char *key, const char *upload_id,
                                     uint32_t number, uint64_t position, const struct object_body *body,
                                     store_part_done *done, void *argument)
{
    struct store_call *call = s3_call_new(store, STORE_MULTIPART_PART, key, argument);
    char number_text[NUMBER_SIZE];
    const struct sigv4_query query[] = {{"partNumber", number_text}, {"uploadId", upload_id}};
    struct s3_request request = {
        .method = "PUT", .key = key, .query = query, .query_count = 2, .body = body, .check_md5 = true};

    (void)position;
    snprintf(number_text, sizeof number_text, "%" PRIu32, number);
    memcpy(call->md5, body->md5, sizeof call->md5);
    call->finish = finish_part;
    call->tell.part = done;
    return s3_call_start(call, &request, S3_XML_LIMIT, S3_STALL_MS);
}

/* The count behind the dash of `"<32 hex>-<n>"`, with or without its quotes; false for any other shape. */
static bool read_part_count(const char *etag, uint64_t *count)
{
    char *end = NULL;

    etag += *etag == '"';
    if (!s3_is_md5(etag, "-") || etag[33] < '0' || etag[33] > '9') {
        return false;
    }
    *count = strtoull(etag + 33, &end, 10);
    return *end == '\0' || strcmp(end, "\"") == 0;
}

static void check_part_count(const struct store_call *call, const char *etag, struct error *error)
{
    uint64_t count = 0;

    if (!read_part_count(etag, &count)) {
        log_line(LOG_DEBUG, NULL, "multipart_complete %s: the ETag %s has no count of parts", call->key, etag);
    } else if (count != call->part_count) {
        error_set(error, QS_ERROR_INTEGRITY,
                  "multipart_complete %s: the ETag %s says %" PRIu64 " parts, and %" PRIu64 " were sent", call->key,
                  etag, count, call->part_count);
    }
}

static void finish_complete(struct store_call *call, struct error *error, struct http_response *response)
{
    struct wanted wanted = {.root = "CompleteMultipartUploadResult", .path = "CompleteMultipartUploadResult/ETag"};
    struct s3_fault fault;

    if (error->code == QS_OK && read_wanted(response, &wanted)) {
        check_part_count(call, wanted.text != NULL ? wanted.text : "", error);
    } else if (error->code == QS_OK && s3_fault_read(response->body, response->body_size, &fault)) {
        s3_error_classify(call->operation, call->key, response, &fault, error);
    } else if (error->code == QS_OK) {
        error_set(error, QS_ERROR_BODY, "multipart_complete %s: the answer doesn't say whether it is complete",
                  call->key);
        error->status = response->status;
    }
    free(wanted.text);
    call->tell.done(call->argument, error);
}

static char *list_of_parts(const struct object_part *parts, size_t count)
{
    struct byte_buffer out = {0};

    byte_buffer_add_text(&out, "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for (size_t i = 0; i < count; i++) {
        byte_buffer_add_format(&out, "<Part><PartNumber>%" PRIu32 "</PartNumber><ETag>&quot;", parts[i].number);
        s3_xml_add_text(&out, parts[i].etag);
        byte_buffer_add_text(&out, "&quot;</ETag></Part>");
    }
    byte_buffer_add_text(&out, "</CompleteMultipartUpload>");
    return byte_buffer_take(&out);
}

struct store_call *s3_multipart_complete(struct object_store *store, const char *key, const char *upload_id,
                                         const struct object_part *parts, size_t count, store_done *done,
                                         void *argument)
{
    struct store_call *call = s3_call_new(store, STORE_MULTIPART_COMPLETE, key, argument);
    const struct sigv4_query query[] = {{"uploadId", upload_id}};
    struct s3_request request = {.method = "POST",
                                 .key = key,
                                 .query = query,
                                 .query_count = 1,
                                 .content_type = "application/xml",
                                 .body = &call->body};

    call->text = list_of_parts(parts, count);
    call->piece = (struct iovec){.iov_base = call->text, .iov_len = strlen(call->text)};
    call->body = (struct object_body){.pieces = &call->piece, .piece_count = 1, .size = call->piece.iov_len};
    call->part_count = count;
    call->finish = finish_complete;
    call->tell.done = done;
    return s3_call_start(call, &request, S3_XML_LIMIT, COMPLETE_STALL_MS);
}

struct store_call *s3_multipart_abort(struct object_store *store, const char *key, const char *upload_id,
                                      store_done *done, void *argument)
{
    struct store_call *call = s3_call_new(store, STORE_MULTIPART_ABORT, key, argument);
    const struct sigv4_query query[] = {{"uploadId", upload_id}};
    struct s3_request request = {.method = "DELETE", .key = key, .query = query, .query_count = 1};

    call->missing_is_good = true;
    call->finish = s3_finish_done;
    call->tell.done = done;
    return s3_call_start(call, &request, S3_XML_LIMIT, S3_STALL_MS);
}
