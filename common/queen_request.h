/*
 * The bodies of Queen requests (spec 1.2 to 1.4), rendered.
 */
#ifndef COMMON_QUEEN_REQUEST_H
#define COMMON_QUEEN_REQUEST_H

#include "common/byte_buffer.h"
#include "common/queen_api.h"

void queen_request_fetch(struct byte_buffer *out, const struct fetch_request_entry *entries, size_t count);
void queen_request_changed(struct byte_buffer *out, const struct changed_request_entry *entries, size_t count);
void queen_request_kv(struct byte_buffer *out, const struct kv_operation *operations, size_t count);

/* As the request and its answer's `op` spell it. */
const char *kv_kind_name(enum kv_kind kind);

#endif
