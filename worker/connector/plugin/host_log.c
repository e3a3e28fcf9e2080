/* Log lines for the host: host_log.h. */
#include "worker/connector/plugin/host_log.h"

#include <pthread.h>
#include <string.h>

#include "common/log.h"
#include "common/utf8.h"
#include "common/visible.h"

#define MESSAGE_MAX 2048

/* The host's function of this thread, behind a key: a thread-local variable of a library that is loaded late would be
 * allocated by each of the host's threads. */
static pthread_key_t current_key;

static pico_log_fn current(void)
{
    union {
        void *pointer;
        pico_log_fn function;
    } value = {.pointer = pthread_getspecific(current_key)};

    return value.function;
}

/* The host takes text for UTF-8, and a line for a line, and shows both to somebody: names that strangers chose must not
 * break any of it. */
static size_t clean(const char *message, char out[MESSAGE_MAX])
{
    size_t left = strnlen(message, MESSAGE_MAX);
    size_t size = 0;

    while (left > 0 && size < MESSAGE_MAX - 4) {
        size_t length = utf8_length(message, left);
        if (!visible_is(message, length)) {
            out[size++] = '?';
            length = length > 0 ? length : 1;
        } else {
            memcpy(out + size, message, length);
            size += length;
        }
        message += length;
        left -= length;
    }
    return size;
}

static void take(void *argument, enum log_level level, const char *subject, const char *message)
{
    static const char target[] = "picomq_connector_s3_sink";
    static const uint8_t levels[] = {[LOG_ERROR] = 4, [LOG_WARN] = 3, [LOG_INFO] = 2, [LOG_DEBUG] = 1};
    char text[MESSAGE_MAX];

    (void)argument;
    (void)subject;
    pico_log_fn log = current();
    if (log != NULL) {
        size_t size = clean(message, text);
        log(levels[level], (const uint8_t *)target, sizeof target - 1, (const uint8_t *)text, size);
    }
}

void host_log_start(void)
{
    pthread_key_create(&current_key, NULL);
    log_configure(LOG_DEBUG, false);
    log_divert(take, NULL);
}

pico_log_fn host_log_enter(pico_log_fn log)
{
    union {
        void *pointer;
        pico_log_fn function;
    } value = {.function = log};
    pico_log_fn before = current();

    pthread_setspecific(current_key, value.pointer);
    return before;
}
