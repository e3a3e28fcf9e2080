/*
 * A host for the connector plugin, as bare as can be: loads the library and calls what lines on standard input say, one
 * a line, so that a test can do with it what PicoMQ's runtime does, and worse.
 *
 *     plugin_host LIBRARY
 *
 *     TAG open ID CONFIG | TAG consume ID TOPIC BATCH MESSAGES | TAG close ID | TAG version | TAG unload
 *     TAG churn FIRST COUNT CONFIG     opens and closes so many ids, one after the other
 *     TAG fork ID                      what a forked child gets: open, consume, close of ID
 *     TAG threads | TAG memory | TAG descriptors      of this process: a count, kilobytes resident, a count
 *
 * Buffers are in hex, `-` for none. A TAG that begins with & runs on a thread of its own. Answers are `TAG NUMBER`, in
 * the order in which they come; log lines are `log LEVEL TARGET MESSAGE`. Ends with its input.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void log_function(uint8_t level, const uint8_t *target, size_t target_size, const uint8_t *message,
                          size_t message_size);

static void *library;
static int32_t (*sink_open)(uint32_t id, const uint8_t *config, size_t size, log_function *log);
static int32_t (*sink_consume)(uint32_t id, const uint8_t *topic, size_t topic_size, const uint8_t *batch,
                               size_t batch_size, const uint8_t *messages, size_t messages_size);
static int32_t (*sink_close)(uint32_t id);
static const char *(*sink_version)(void);
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

static void log_line(uint8_t level, const uint8_t *target, size_t target_size, const uint8_t *message,
                     size_t message_size)
{
    pthread_mutex_lock(&output);
    printf("log %d %.*s %.*s\n", level, (int)target_size, (const char *)target, (int)message_size,
           (const char *)message);
    fflush(stdout);
    pthread_mutex_unlock(&output);
}

static void answer(const char *tag, long number)
{
    pthread_mutex_lock(&output);
    printf("%s %ld\n", tag, number);
    fflush(stdout);
    pthread_mutex_unlock(&output);
}

static void fail(const char *what)
{
    fprintf(stderr, "plugin_host: %s\n", what);
    exit(2);
}

static void *symbol(const char *name)
{
    void *found = dlsym(library, name);

    if (found == NULL) {
        fail(dlerror());
    }
    return found;
}

static void load(const char *path)
{
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fail(dlerror());
    }
    *(void **)&sink_open = symbol("pico_sink_open");
    *(void **)&sink_consume = symbol("pico_sink_consume");
    *(void **)&sink_close = symbol("pico_sink_close");
    *(void **)&sink_version = symbol("pico_sink_version");
}

struct buffer {
    uint8_t *bytes; /* exactly so many, so that a sanitizer sees what is read past them */
    size_t size;
};

static unsigned hex_digit(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c | 0x20) - 'a' + 10;
}

static struct buffer read_hex(const char *text)
{
    struct buffer buffer = {NULL, 0};

    if (text == NULL || strcmp(text, "-") == 0) {
        return buffer;
    }
    buffer.size = strlen(text) / 2;
    buffer.bytes = malloc(buffer.size > 0 ? buffer.size : 1);
    if (buffer.bytes == NULL) {
        fail("out of memory");
    }
    for (size_t i = 0; i < buffer.size; i++) {
        buffer.bytes[i] = (uint8_t)(hex_digit(text[2 * i]) << 4 | hex_digit(text[2 * i + 1]));
    }
    return buffer;
}

static long count_entries(const char *path)
{
    DIR *folder = opendir(path);
    long count = 0;

    if (folder == NULL) {
        fail(path);
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        count += entry->d_name[0] != '.' ? 1 : 0;
    }
    closedir(folder);
    return count;
}

static long resident_kilobytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    char line[128];

    if (file == NULL || fgets(line, sizeof line, file) == NULL || strchr(line, ' ') == NULL) {
        fail("/proc/self/statm");
    }
    (void)fclose(file);
    long resident = strtol(strchr(line, ' '), NULL, 10); /* behind the total */
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* The last open that failed, or 0. */
static long churn(uint32_t first, uint32_t count, const struct buffer *config)
{
    long failed = 0;

    for (uint32_t id = first; id < first + count; id++) {
        int32_t opened = sink_open(id, config->bytes, config->size, NULL);
        if (opened != 0 || sink_close(id) != 0) {
            failed = opened != 0 ? opened : -100;
        }
    }
    return failed;
}

/* A digit for each call: 1 where it answered -1. */
static long call_in_child(uint32_t id)
{
    static const uint8_t topic[] = {1, 't'};
    static const uint8_t batch[] = {0, 0, 0};
    static const uint8_t none[] = {0, 0};
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        int refused = (sink_open(id + 1000, none, 0, log_line) == -1) * 100 +
                      (sink_consume(id, topic, sizeof topic, batch, sizeof batch, none, sizeof none) == -1) * 10 +
                      (sink_close(id) == -1) + (sink_version() != NULL) * 0;
        _exit(refused);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
        fail("fork");
    }
    return WEXITSTATUS(status);
}

#define WORDS_MAX 6

static long call(char **words)
{
    const char *verb = words[1];
    uint32_t id = words[2] != NULL ? (uint32_t)strtoul(words[2], NULL, 10) : 0;
    struct buffer buffers[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    long result = -1000;

    if (strcmp(verb, "open") == 0) {
        buffers[0] = read_hex(words[3]);
        result = sink_open(id, buffers[0].bytes, buffers[0].size, log_line);
    } else if (strcmp(verb, "consume") == 0) {
        for (int i = 0; i < 3; i++) {
            buffers[i] = read_hex(words[3 + i]);
        }
        result = sink_consume(id, buffers[0].bytes, buffers[0].size, buffers[1].bytes, buffers[1].size,
                              buffers[2].bytes, buffers[2].size);
    } else if (strcmp(verb, "churn") == 0 && words[3] != NULL) {
        buffers[0] = read_hex(words[4]);
        result = churn(id, (uint32_t)strtoul(words[3], NULL, 10), &buffers[0]);
    } else if (strcmp(verb, "close") == 0) {
        result = sink_close(id);
    } else if (strcmp(verb, "fork") == 0) {
        result = call_in_child(id);
    } else if (strcmp(verb, "version") == 0) {
        result = sink_version() != NULL ? (long)strlen(sink_version()) : -1;
    } else if (strcmp(verb, "unload") == 0) {
        result = dlclose(library);
    } else if (strcmp(verb, "threads") == 0) {
        result = count_entries("/proc/self/task");
    } else if (strcmp(verb, "descriptors") == 0) {
        result = count_entries("/proc/self/fd");
    } else if (strcmp(verb, "memory") == 0) {
        result = resident_kilobytes();
    }
    for (int i = 0; i < 3; i++) {
        free(buffers[i].bytes);
    }
    return result;
}

static void *run(void *argument)
{
    char *line = argument;
    char *words[WORDS_MAX] = {NULL};
    char *rest = line;
    int count = 0;

    while (count < WORDS_MAX && (words[count] = strtok_r(rest, " \n", &rest)) != NULL) {
        count++;
    }
    if (count >= 2) {
        answer(words[0], call(words));
    }
    free(line);
    return NULL;
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t capacity = 0;

    if (argc != 2) {
        fail("usage: plugin_host LIBRARY");
    }
    load(argv[1]);
    while (getline(&line, &capacity, stdin) > 0) {
        char *copy = strdup(line);
        pthread_t thread;
        if (copy == NULL) {
            fail("out of memory");
        }
        if (line[0] != '&') {
            run(copy);
        } else if (pthread_create(&thread, NULL, run, copy) != 0 || pthread_detach(thread) != 0) {
            fail("no thread");
        }
    }
    free(line);
    pthread_mutex_lock(&output); /* for good: exit flushes, without asking who is in the middle of it */
    return 0;
}
