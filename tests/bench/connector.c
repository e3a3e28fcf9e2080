/*
 * What the connector plugin costs: processor seconds to take records in through its C ABI (JSON lines from schema json,
 * into a directory), beside those of checking the same payloads and copying them into files of the same size.
 *
 *     connector LIBRARY FOLDER MEGABYTES <payloads, one a line     prints `plugin SECONDS`, `copy SECONDS`
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json_scan.h"

#define BATCH     1000
#define FILE_SIZE (8u << 20)

static void fail(const char *what)
{
    fprintf(stderr, "connector: %s\n", what);
    exit(1);
}

static double processor_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* ---- what is written: all lines of the input, over and over ---- */

static char *text;
static size_t text_size;

static void read_input(void)
{
    size_t capacity = 1u << 20;
    size_t got;

    text = malloc(capacity);
    while (text != NULL && (got = fread(text + text_size, 1, capacity - text_size, stdin)) > 0) {
        text_size += got;
        if (text_size == capacity) {
            char *grown = realloc(text, 2 * capacity);
            if (grown == NULL) {
                fail("out of memory");
            }
            text = grown;
            capacity *= 2;
        }
    }
    if (text == NULL || text_size == 0 || text[text_size - 1] != '\n') {
        fail("no payloads on standard input");
    }
}

static const char *next_line(size_t *at, size_t *size)
{
    if (*at == text_size) {
        *at = 0;
    }
    const char *line = text + *at;
    *size = (size_t)((const char *)memchr(line, '\n', text_size - *at) - line);
    *at += *size + 1;
    return line;
}

/* ---- through the plugin ---- */

struct buffer {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
};

static void add(struct buffer *buffer, const void *bytes, size_t size)
{
    if (buffer->size + size > buffer->capacity) {
        buffer->capacity = 2 * (buffer->size + size);
        buffer->bytes = realloc(buffer->bytes, buffer->capacity);
        if (buffer->bytes == NULL) {
            fail("out of memory");
        }
    }
    memcpy(buffer->bytes + buffer->size, bytes, size);
    buffer->size += size;
}

static void add_varint(struct buffer *buffer, uint64_t number)
{
    uint8_t bytes[10];
    size_t size = 0;

    for (; number > 0x7f; number >>= 7) {
        bytes[size++] = (uint8_t)(number | 0x80);
    }
    bytes[size++] = (uint8_t)number;
    add(buffer, bytes, size);
}

/* The payload bytes in it. */
static size_t make_batch(struct buffer *buffer, size_t *at, uint64_t offset)
{
    size_t payloads = 0;

    buffer->size = 0;
    add_varint(buffer, 0);
    add_varint(buffer, BATCH);
    for (uint64_t i = 0; i < BATCH; i++) {
        size_t size;
        const char *line = next_line(at, &size);
        add_varint(buffer, offset + i);
        add_varint(buffer, UINT64_C(1788470104118) + offset / 10);
        add(buffer, "\0\0", 2); /* no key, no headers */
        add_varint(buffer, size);
        add(buffer, line, size);
        payloads += size;
    }
    return payloads;
}

typedef void log_function(uint8_t level, const uint8_t *target, size_t target_size, const uint8_t *message,
                          size_t message_size);

static double through_plugin(const char *path, const char *folder, size_t wanted)
{
    int32_t (*sink_open)(uint32_t, const uint8_t *, size_t, log_function *);
    int32_t (*sink_consume)(uint32_t, const uint8_t *, size_t, const uint8_t *, size_t, const uint8_t *, size_t);
    int32_t (*sink_close)(uint32_t);
    void *library = dlopen(path, RTLD_NOW);
    struct buffer batch = {0};
    struct buffer messages = {0};
    char config[4096];
    size_t at = 0;

    if (library == NULL) {
        fail(dlerror());
    }
    *(void **)&sink_open = dlsym(library, "pico_sink_open");
    *(void **)&sink_consume = dlsym(library, "pico_sink_consume");
    *(void **)&sink_close = dlsym(library, "pico_sink_close");
    int size = snprintf(config, sizeof config, "{\"bucket\":\"plugin\",\"endpoint\":\"file://%s\"}", folder);
    if (sink_open(1, (const uint8_t *)config, (size_t)size, NULL) != 0) {
        fail("the plugin can't be opened");
    }
    double seconds = 0;
    for (uint64_t offset = 0, done = 0; done < wanted; offset += BATCH) {
        batch.size = 0;
        add_varint(&batch, 0);
        add_varint(&batch, offset);
        add_varint(&batch, 0);
        done += make_batch(&messages, &at, offset);
        double before = processor_seconds();
        if (sink_consume(1, (const uint8_t *)"\6orders", 7, batch.bytes, batch.size, messages.bytes, messages.size) !=
            0) {
            fail("a batch was not taken");
        }
        seconds += processor_seconds() - before;
    }
    double before = processor_seconds();
    if (sink_close(1) != 0) {
        fail("the plugin can't be closed");
    }
    free(batch.bytes);
    free(messages.bytes);
    return seconds + processor_seconds() - before;
}

/* ---- checking and copying ---- */

static void write_file(const char *folder, unsigned number, const char *bytes, size_t size)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/copy/%u", folder, number);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    for (size_t written = 0; file >= 0 && written < size;) {
        ssize_t part = write(file, bytes + written, size - written);
        if (part < 0) {
            fail("a file can't be written");
        }
        written += (size_t)part;
    }
    if (file < 0 || fsync(file) != 0 || close(file) != 0) {
        fail("a file can't be written");
    }
}

static double checking_and_copying(const char *folder, size_t wanted)
{
    struct json_scan scan = {0};
    char *bytes = malloc(FILE_SIZE);
    char path[4096];
    size_t used = 0;
    size_t at = 0;
    unsigned number = 0;

    snprintf(path, sizeof path, "%s/copy", folder);
    if (bytes == NULL || mkdir(path, 0777) != 0) {
        fail("no folder to copy to");
    }
    double before = processor_seconds();
    for (size_t done = 0; done < wanted;) {
        struct json_value value;
        size_t size;
        const char *line = next_line(&at, &size);
        if (json_scan_value(&scan, line, line + size, &value) != line + size) {
            fail("a line isn't JSON");
        }
        if (used + size > FILE_SIZE) {
            write_file(folder, number++, bytes, used);
            used = 0;
        }
        memcpy(bytes + used, line, size);
        used += size;
        done += size;
    }
    write_file(folder, number, bytes, used);
    double seconds = processor_seconds() - before;
    free(bytes);
    free(scan.bits);
    return seconds;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fail("usage: connector LIBRARY FOLDER MEGABYTES <payloads");
    }
    size_t wanted = (size_t)strtoul(argv[3], NULL, 10) * 1000000;
    read_input();
    printf("plugin %.3f\n", through_plugin(argv[1], argv[2], wanted));
    printf("copy %.3f\n", checking_and_copying(argv[2], wanted));
    free(text);
    return 0;
}
