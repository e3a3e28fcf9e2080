/*
 * Frames over a socket pair; report.h tells what is in them.
 *
 * Every frame takes a multiple of eight bytes on the wire, so that a body that lies in the incoming buffer can be used
 * as the struct that it is, without a copy. A body's size is checked against its kind here, once, so that no reader
 * has to.
 */
#include "common/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define FRAME_ALIGNMENT 8u
#define FILL_ROOM       65536u /* what one read may bring */

static size_t frame_size(size_t body_size)
{
    size_t size = sizeof(struct report_header) + body_size;

    return (size + FRAME_ALIGNMENT - 1) / FRAME_ALIGNMENT * FRAME_ALIGNMENT;
}

/* Room for size more bytes at the end. What has been consumed goes first: start becomes 0, which keeps bodies aligned. */
static int buffer_reserve(struct report_buffer *buffer, size_t size)
{
    size_t used = buffer->end - buffer->start;
    size_t capacity = buffer->capacity == 0 ? 4096 : buffer->capacity;
    char *bytes;

    if (buffer->start > 0) {
        memmove(buffer->bytes, buffer->bytes + buffer->start, used);
        buffer->start = 0;
        buffer->end = used;
    }
    while (capacity < used + size) {
        capacity *= 2;
    }
    if (capacity == buffer->capacity) {
        return 0;
    }
    bytes = realloc(buffer->bytes, capacity);
    if (bytes == NULL) {
        return QS_ERROR_NO_MEMORY;
    }
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return 0;
}

static void buffer_put(struct report_buffer *buffer, const void *bytes, size_t size)
{
    if (size > 0) {
        memcpy(buffer->bytes + buffer->end, bytes, size);
        buffer->end += size;
    }
}

int report_append(struct report_buffer *buffer, enum report_kind kind, const void *body, size_t size, const void *tail,
                  size_t tail_size)
{
    static const char padding[FRAME_ALIGNMENT];
    struct report_header header = {.kind = (uint32_t)kind};
    size_t whole;

    if (size > REPORT_SIZE_MAX || tail_size > REPORT_SIZE_MAX - size) {
        return QS_ERROR_INPUT;
    }
    header.size = (uint32_t)(size + tail_size);
    whole = frame_size(header.size);
    if (buffer_reserve(buffer, whole) != 0) {
        return QS_ERROR_NO_MEMORY;
    }
    buffer_put(buffer, &header, sizeof header);
    buffer_put(buffer, body, size);
    buffer_put(buffer, tail, tail_size);
    buffer_put(buffer, padding, whole - sizeof header - header.size);
    return 0;
}

int report_flush(struct report_buffer *buffer, int descriptor)
{
    while (buffer->start < buffer->end) {
        ssize_t sent =
            send(descriptor, buffer->bytes + buffer->start, buffer->end - buffer->start, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return 0;
        }
        if (sent < 0) {
            return QS_ERROR_SYSTEM;
        }
        buffer->start += (size_t)sent;
    }
    buffer->start = 0;
    buffer->end = 0;
    return 1;
}

int report_fill(struct report_buffer *buffer, int descriptor)
{
    ssize_t got;

    if (buffer_reserve(buffer, FILL_ROOM) != 0) {
        errno = ENOMEM;
        return QS_ERROR_SYSTEM;
    }
    do {
        got = recv(descriptor, buffer->bytes + buffer->end, buffer->capacity - buffer->end, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        return 0;
    }
    if (got <= 0) {
        return QS_ERROR_SYSTEM;
    }
    buffer->end += (size_t)got;
    return 1;
}

/* body is read only where all of it has come; before that only the header is judged. */
static bool size_fits_kind(const struct report_header *header, const void *body)
{
    switch (header->kind) {
    case REPORT_QUEUE: return header->size == sizeof(struct report_queue);
    case REPORT_WORKER: return header->size == sizeof(struct report_worker);
    case REPORT_SHARE: return header->size == sizeof(struct report_share);
    case REPORT_CONNECTOR: return header->size == sizeof(struct report_connector);
    case REPORT_ASK_STATE: return header->size == sizeof(struct report_ask_state);
    case REPORT_ASSIGN: {
        const struct report_assign *assign = body;

        return header->size >= sizeof *assign && header->size <= REPORT_SIZE_MAX &&
               (assign == NULL || assign->name_size == header->size - sizeof *assign);
    }
    default: return false;
    }
}

int report_next(struct report_buffer *buffer, struct report_header *header, const void **body)
{
    size_t used = buffer->end - buffer->start;
    const char *start;

    if (used < sizeof *header) {
        return 0;
    }
    start = buffer->bytes + buffer->start;
    memcpy(header, start, sizeof *header);
    if (!size_fits_kind(header, NULL)) {
        return QS_ERROR_BODY;
    }
    if (used < frame_size(header->size)) {
        return 0;
    }
    *body = start + sizeof *header;
    if (!size_fits_kind(header, *body)) {
        return QS_ERROR_BODY;
    }
    buffer->start += frame_size(header->size);
    return 1;
}

const char *report_state_name(uint32_t state)
{
    static const char *const names[] = {
        [QUEUE_CLAIMING] = "claiming", [QUEUE_RECOVERING] = "recovering",
        [QUEUE_RUNNING] = "running",   [QUEUE_STOPPED] = "stopped",
        [QUEUE_LOST] = "lost",         [QUEUE_DRAINED] = "drained",
    };

    return state < sizeof names / sizeof names[0] ? names[state] : "unknown";
}

void report_buffer_free(struct report_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct report_buffer){0};
}
