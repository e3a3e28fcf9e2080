/* The bucket as a command sees it: bucket.h. */
#include "supervisor/commands/bucket.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file_store.h"
#include "common/memory.h"
#include "common/s3_store.h"
#include "supervisor/command.h"
#include "supervisor/commands/output.h"

#define TRIES      5
#define FIRST_MS   250   /* before the second try, then doubled */
#define LONGEST_MS 10000 /* of a wait that the bucket asks for */

/* ---- open and close ---- */

static struct object_store *open_store(struct bucket *bucket, struct error *error)
{
    const struct settings *settings = &bucket->settings;

    if (settings->file_root == NULL) {
        return s3_store_create(bucket->reactor, settings, NULL, NULL, error);
    }
    return file_store_open(bucket->reactor, settings->file_root, settings->bucket, error);
}

int bucket_open(struct bucket *bucket, const char *file, struct error *error)
{
    memset(bucket, 0, sizeof *bucket);
    if (settings_load_bucket(file, true, &bucket->settings, error) != 0) {
        return COMMAND_CONFIGURATION;
    }
    log_configure(LOG_WARN, false);
    bucket->reactor = reactor_create(error);
    if (bucket->reactor != NULL) {
        bucket->store = open_store(bucket, error);
    }
    if (bucket->store != NULL) {
        return 0;
    }
    bucket_close(bucket);
    return COMMAND_UNREACHABLE;
}

void bucket_close(struct bucket *bucket)
{
    if (bucket->store != NULL) {
        bucket->store->operations->destroy(bucket->store);
    }
    if (bucket->reactor != NULL) {
        reactor_destroy(bucket->reactor);
    }
    settings_free(&bucket->settings);
    memset(bucket, 0, sizeof *bucket);
}

void bucket_turn(struct bucket *bucket)
{
    reactor_run_once(bucket->reactor, -1);
}

int bucket_exit_code(const struct error *error)
{
    switch (error->code) {
    case QS_OK: return EXIT_SUCCESS;
    case QS_ERROR_INPUT: return COMMAND_CONFIGURATION;
    case QS_ERROR_BODY:
    case QS_ERROR_NOT_FOUND:
    case QS_ERROR_INTEGRITY: return COMMAND_FAULT;
    default: return COMMAND_UNREACHABLE;
    }
}

int command_no_window(const struct bucket *bucket, const struct window_query *query)
{
    const char *stretch = query->has_since || query->has_until ? " in that stretch of time" : "";
    char number[24] = "";

    if (query->first_k > 0) {
        (void)snprintf(number, sizeof number, " %" PRId64, query->first_k);
    }
    return command_fail(COMMAND_FAULT, "queue %.*s has no window%s%s in bucket %s%s%s", (int)query->queue.size,
                        query->queue.bytes, number, stretch, bucket->settings.bucket,
                        query->prefix[0] != '\0' ? " below " : "", query->prefix);
}

/* How long to wait before another try; -1: it was the last. */
static int64_t retry_after(int tries, const struct error *error)
{
    if (!error->retriable || tries >= TRIES) {
        return -1;
    }
    int64_t wait = (int64_t)FIRST_MS << (tries - 1);
    if (error->retry_after_ms > wait) {
        wait = error->retry_after_ms;
    }
    return wait < LONGEST_MS ? wait : LONGEST_MS;
}

/* ---- lists ---- */

struct listing {
    struct bucket *bucket;
    const char *prefix;
    bucket_keep *keep;
    void *argument;
    struct bucket_keys *keys;
    char *next;
    int tries;
    bool done;
    struct error error;
    struct timer timer;
};

static void list_page(void *argument);

static void page_done(void *argument, const struct error *error, const struct listed_object *objects, size_t count,
                      const char *next)
{
    struct listing *listing = argument;
    struct bucket_keys *keys = listing->keys;
    int64_t wait = error->code != QS_OK ? retry_after(listing->tries, error) : -1;

    if (wait >= 0) {
        timer_set(reactor_timers(listing->bucket->reactor), &listing->timer,
                  (struct mono_ms){reactor_now(listing->bucket->reactor).v + wait}, list_page, listing);
        return;
    }
    listing->error = *error;
    listing->tries = 0;
    for (size_t i = 0; i < count && error->code == QS_OK; i++) {
        if (listing->keep != NULL && !listing->keep(listing->argument, objects[i].key)) {
            continue;
        }
        keys->keys = memory_grow(keys->keys, &keys->capacity, keys->count + 1, sizeof *keys->keys);
        keys->keys[keys->count++] = memory_copy_text(objects[i].key);
    }
    char *token = error->code == QS_OK ? memory_copy_text(next) : NULL;
    free(listing->next);
    listing->next = token;
    if (token != NULL) {
        list_page(listing);
    } else {
        listing->done = true;
    }
}

static void list_page(void *argument)
{
    struct listing *listing = argument;
    struct object_store *store = listing->bucket->store;

    listing->tries++;
    store->operations->list(store, listing->prefix, listing->next, page_done, listing);
}

int bucket_list(struct bucket *bucket, const char *prefix, bucket_keep *keep, void *argument, struct bucket_keys *keys,
                struct error *error)
{
    struct listing listing = {.bucket = bucket, .prefix = prefix, .keep = keep, .argument = argument, .keys = keys};

    list_page(&listing);
    while (!listing.done) {
        bucket_turn(bucket);
    }
    free(listing.next);
    *error = listing.error;
    return error->code;
}

void bucket_keys_free(struct bucket_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++) {
        free(keys->keys[i]);
    }
    free(keys->keys);
    memset(keys, 0, sizeof *keys);
}

/* ---- many objects ---- */

struct asked {
    struct asking_run *run;
    char *key; /* NULL: the place is free */
    struct store_call *call;
    struct timer timer;
    int tries;
    bool answered;
    struct bucket_answer answer;
};

/* Objects are asked in a ring: the oldest is the next whose answer is given. */
struct asking_run {
    struct bucket *bucket;
    const struct bucket_asking *asking;
    struct asked ring[BUCKET_UNDER_WAY];
    size_t given; /* answers that were given */
    size_t begun;
};

static void ask_one(void *argument);

/* True where it is over. */
static bool conclude(struct asked *asked, const struct error *error)
{
    struct asking_run *run = asked->run;
    int64_t wait = error->code != QS_OK ? retry_after(asked->tries, error) : -1;

    asked->call = NULL;
    if (wait >= 0) {
        timer_set(reactor_timers(run->bucket->reactor), &asked->timer,
                  (struct mono_ms){reactor_now(run->bucket->reactor).v + wait}, ask_one, asked);
        return false;
    }
    asked->answered = true;
    asked->answer.error = *error;
    return true;
}

static void head_done(void *argument, const struct error *error, const struct head_answer *answer)
{
    struct asked *asked = argument;

    if (conclude(asked, error) && error->code == QS_OK) {
        asked->answer.size = answer->size;
    }
}

static void get_done(void *argument, const struct error *error, char *bytes, size_t size)
{
    struct asked *asked = argument;

    if (conclude(asked, error) && error->code == QS_OK) {
        asked->answer.bytes = bytes;
        asked->answer.size = size;
    } else {
        free(bytes);
    }
}

static void ask_one(void *argument)
{
    struct asked *asked = argument;
    struct object_store *store = asked->run->bucket->store;

    asked->tries++;
    asked->call = asked->run->asking->question == BUCKET_SIZE
                      ? store->operations->head(store, asked->key, head_done, asked)
                      : store->operations->get(store, asked->key, asked->run->asking->size_limit, get_done, asked);
}

static void clear_asked(struct asked *asked)
{
    struct bucket *bucket = asked->run->bucket;

    if (asked->call != NULL) {
        bucket->store->operations->cancel(bucket->store, asked->call);
    }
    timer_cancel(reactor_timers(bucket->reactor), &asked->timer);
    free(asked->key);
    free(asked->answer.bytes);
    memset(asked, 0, sizeof *asked);
}

/* As many as there is room for; false where there are no more keys. */
static bool begin_more(struct asking_run *run)
{
    while (run->begun < run->given + BUCKET_UNDER_WAY) {
        const char *key = run->asking->next(run->asking->argument, run->begun);
        if (key == NULL) {
            return false;
        }
        struct asked *asked = &run->ring[run->begun++ % BUCKET_UNDER_WAY];
        asked->run = run;
        asked->key = memory_copy_text(key);
        ask_one(asked);
    }
    return true;
}

static int give_answers(struct asking_run *run)
{
    int code = 0;

    while (code == 0 && run->given < run->begun && run->ring[run->given % BUCKET_UNDER_WAY].answered) {
        struct asked *asked = &run->ring[run->given % BUCKET_UNDER_WAY];
        code = run->asking->take(run->asking->argument, run->given, &asked->answer);
        clear_asked(asked);
        run->given++;
    }
    return code;
}

int bucket_ask(struct bucket *bucket, const struct bucket_asking *asking)
{
    struct asking_run *run = memory_new(1, sizeof *run);
    bool more = true;
    int code = 0;

    run->bucket = bucket;
    run->asking = asking;
    while (code == 0) {
        more = more && begin_more(run);
        if (!more && run->given == run->begun) {
            break;
        }
        if (run->given < run->begun && !run->ring[run->given % BUCKET_UNDER_WAY].answered) {
            bucket_turn(bucket);
        }
        code = give_answers(run);
    }
    for (size_t i = 0; i < BUCKET_UNDER_WAY; i++) {
        if (run->ring[i].run != NULL) {
            clear_asked(&run->ring[i]);
        }
    }
    free(run);
    return code;
}

/* ---- the size of one ---- */

struct sizing {
    const char *key;
    struct error *error;
    uint64_t size;
};

static const char *next_sizing(void *argument, size_t which)
{
    const struct sizing *sizing = argument;

    return which == 0 ? sizing->key : NULL;
}

static int take_sizing(void *argument, size_t which, struct bucket_answer *answer)
{
    struct sizing *sizing = argument;

    (void)which;
    *sizing->error = answer->error;
    sizing->size = answer->size;
    return 0;
}

uint64_t bucket_ask_size(struct bucket *bucket, const char *key, struct error *error)
{
    struct sizing sizing = {.key = key, .error = error};
    const struct bucket_asking asking = {
        .question = BUCKET_SIZE, .next = next_sizing, .take = take_sizing, .argument = &sizing};

    (void)bucket_ask(bucket, &asking);
    return sizing.size;
}

/* ---- parts of objects ---- */

static void start_fetch(void *argument);

static void fetch_done(void *argument, const struct error *error, char *bytes, size_t size)
{
    struct bucket_fetch *fetch = argument;
    int64_t wait = error->code != QS_OK ? retry_after(fetch->tries, error) : -1;

    fetch->call = NULL;
    if (wait >= 0) {
        timer_set(reactor_timers(fetch->bucket->reactor), &fetch->timer,
                  (struct mono_ms){reactor_now(fetch->bucket->reactor).v + wait}, start_fetch, fetch);
        return;
    }
    fetch->done(fetch->argument, error, bytes, size);
}

static void start_fetch(void *argument)
{
    struct bucket_fetch *fetch = argument;
    struct object_store *store = fetch->bucket->store;

    fetch->tries++;
    fetch->call = fetch->bucket->settings.file_root != NULL
                      ? file_store_get_range(store, fetch->key, fetch->position, fetch->size, fetch_done, fetch)
                      : s3_store_get_range(store, fetch->key, fetch->position, fetch->size, fetch_done, fetch);
}

void bucket_fetch_range(struct bucket *bucket, struct bucket_fetch *fetch, const char *key, uint64_t position,
                        size_t size, store_get_done *done, void *argument)
{
    *fetch = (struct bucket_fetch){
        .bucket = bucket, .key = key, .position = position, .size = size, .done = done, .argument = argument};
    start_fetch(fetch);
}

void bucket_fetch_cancel(struct bucket *bucket, struct bucket_fetch *fetch)
{
    if (fetch->call != NULL) {
        bucket->store->operations->cancel(bucket->store, fetch->call);
        fetch->call = NULL;
    }
    timer_cancel(reactor_timers(bucket->reactor), &fetch->timer);
}

/* ---- windows ---- */

int bucket_check_follows(const struct window_query *query, int64_t last_k, const struct window_entry *entry,
                         struct error *error)
{
    char queue[LAKE_NAME_SIZE];
    char key[LAKE_KEY_SIZE];

    if (last_k == 0 || entry->k == last_k + 1) {
        return 0;
    }
    lake_escape_name(query->queue, queue);
    if (lake_manifest_key(query->prefix, queue, last_k + 1, key, error) != 0) {
        return error->code;
    }
    return error_set(error, QS_ERROR_NOT_FOUND, "the manifest %s: missing, though window %" PRId64 " is there", key,
                     entry->k);
}

static void windows_ready(void *argument)
{
    *(bool *)argument = true;
}

int bucket_windows(struct bucket *bucket, const struct window_query *query, bucket_window *take, void *argument,
                   struct error *error)
{
    bool ready = false;
    struct window_entry entry;
    int code = 0;
    struct window_list *list = window_list_open(bucket->reactor, bucket->store, query, windows_ready, &ready, error);

    if (list == NULL) {
        return (int)error->code;
    }
    for (bool more = true; more && code == 0;) {
        switch (window_list_take(list, &entry, error)) {
        case WINDOW_LIST_WAIT:
            while (!ready) {
                bucket_turn(bucket);
            }
            ready = false;
            break;
        case WINDOW_LIST_WINDOW: code = take(argument, &entry); break;
        case WINDOW_LIST_END: more = false; break;
        case WINDOW_LIST_FAILED: code = (int)error->code; break;
        }
    }
    window_list_close(list);
    return code;
}
