/*
 * Listing windows (window_list.h). Three things follow each other: a page of keys is listed; while the first window that
 * ends after `since` isn't found, single manifests of the page are looked at, its last first and then by bisection;
 * then the page's manifests are fetched into a ring of slots, from which they are taken in order.
 *
 * A manifest that can't be read can't say where it lies in time. The search then goes on before it, which at worst looks
 * at windows that the filter behind it drops.
 */
#include "common/lake/window_list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

#define SLOT_COUNT 8u
/* A manifest of a million objects has some 300 MB (spec 2.3): of such ones, not eight at once. */
#define AHEAD_MAX    67108864u
#define MANIFEST_MAX 1073741824u
#define TRIES        5
#define DELAY_MS     200

struct window_key {
    int64_t k;
    uint64_t size;
};

/* A call that is made again after a passing failure. */
struct attempt {
    struct window_list *list;
    struct store_call *call;
    struct timer timer;
    int tries;
};

struct slot {
    struct attempt attempt;
    struct window_key window;
    char key[LAKE_KEY_SIZE];
    bool done; /* the manifest is there, or the error */
    bool whole;
    struct manifest manifest;
    struct error error;
};

struct window_list {
    struct reactor *reactor;
    struct object_store *store;
    window_list_ready *ready;
    void *argument;
    char *prefix;
    char queue[LAKE_NAME_SIZE]; /* escaped */
    char *queue_name;
    size_t queue_size;
    char folder[LAKE_KEY_SIZE]; /* what the keys begin with */
    struct window_query query;  /* its pointers are not looked at */

    struct attempt listing;
    bool listed; /* a page is there */
    char *token; /* of the page after, NULL: none */
    struct window_key *page;
    size_t page_count;
    size_t page_capacity;
    size_t page_next; /* to be fetched */

    bool sought; /* the first window is found, or needn't be */
    size_t low;  /* it is at or after this one of the page … */
    size_t high; /* … and at or before this one */
    bool bracketed;

    struct slot slots[SLOT_COUNT];
    unsigned head;  /* the slot to be taken next */
    unsigned count; /* in use from there on */
    uint64_t ahead; /* bytes of their manifests */
    bool taken;     /* the head was given out: it is freed at the next call */
    bool waiting;
    bool ended;
    bool failed;
    struct error error;
};

static void proceed(struct window_list *list);

/* ---- attempts ---- */

/* True where the call is made again, after a while. */
static bool try_again(struct attempt *attempt, const struct error *error, void (*again)(void *), void *argument)
{
    struct reactor *reactor = attempt->list->reactor;
    int64_t delay = (int64_t)DELAY_MS << attempt->tries;

    attempt->call = NULL;
    if (!error->retriable || ++attempt->tries == TRIES) {
        return false;
    }
    if (error->retry_after_ms >= 0) {
        delay = error->retry_after_ms < 60000 ? error->retry_after_ms : 60000;
    }
    timer_set(reactor_timers(reactor), &attempt->timer, (struct mono_ms){reactor_now(reactor).v + delay}, again,
              argument);
    return true;
}

static void stop_attempt(struct attempt *attempt)
{
    if (attempt->call != NULL) {
        attempt->list->store->operations->cancel(attempt->list->store, attempt->call);
        attempt->call = NULL;
    }
    timer_cancel(reactor_timers(attempt->list->reactor), &attempt->timer);
}

/* ---- manifests ---- */

static void check_manifest(struct slot *slot, const char *bytes, size_t size)
{
    const struct window_list *list = slot->attempt.list;
    const struct manifest *manifest = &slot->manifest;

    memset(&slot->manifest, 0, sizeof slot->manifest);
    slot->whole = manifest_parse(bytes, size, &slot->manifest, &slot->error) == 0;
    if (slot->whole && (manifest->bounds.k != slot->window.k || strlen(manifest->queue) != list->queue_size ||
                        memcmp(manifest->queue, list->queue_name, list->queue_size) != 0)) {
        error_set(&slot->error, QS_ERROR_BODY, "it is that of window %" PRId64 " of the queue %s", manifest->bounds.k,
                  manifest->queue);
        manifest_free(&slot->manifest);
        slot->whole = false;
    }
    slot->error.retriable = false;
}

static void start_get(void *argument);

static void got_manifest(void *argument, const struct error *error, char *bytes, size_t size)
{
    struct slot *slot = argument;

    if (error->code != QS_OK) {
        if (try_again(&slot->attempt, error, start_get, slot)) {
            return;
        }
        slot->error = *error;
    } else {
        slot->attempt.call = NULL;
        check_manifest(slot, bytes, size);
        free(bytes);
    }
    slot->done = true;
    proceed(slot->attempt.list);
}

static void start_get(void *argument)
{
    struct slot *slot = argument;
    struct object_store *store = slot->attempt.list->store;

    slot->attempt.call = store->operations->get(store, slot->key, MANIFEST_MAX, got_manifest, slot);
}

/* Into the next free slot. */
static void fetch(struct window_list *list, const struct window_key *window)
{
    struct slot *slot = &list->slots[(list->head + list->count) % SLOT_COUNT];

    memset(slot, 0, sizeof *slot);
    slot->attempt.list = list;
    slot->window = *window;
    /* It was held against this very key when it was listed. */
    (void)lake_manifest_key(list->prefix, list->queue, window->k, slot->key, NULL);
    list->count++;
    list->ahead += window->size;
    start_get(slot);
}

static void free_head(struct window_list *list)
{
    struct slot *slot = &list->slots[list->head];

    stop_attempt(&slot->attempt);
    if (slot->whole) {
        manifest_free(&slot->manifest);
    }
    slot->whole = false;
    slot->done = false;
    list->ahead -= slot->window.size;
    list->head = (list->head + 1) % SLOT_COUNT;
    list->count--;
}

/* ---- pages ---- */

/* The k of a manifest's key; false for any other object that may lie in the folder. */
static bool parse_key(const struct window_list *list, const char *key, int64_t *k)
{
    char same[LAKE_KEY_SIZE];
    size_t size = strlen(list->folder);

    if (strncmp(key, list->folder, size) != 0 || key[size] < '0' || key[size] > '9') {
        return false;
    }
    *k = strtoll(key + size, NULL, 10);
    return *k > 0 && lake_manifest_key(list->prefix, list->queue, *k, same, NULL) == 0 && strcmp(same, key) == 0;
}

static bool is_asked_for(const struct window_query *query, int64_t k)
{
    return k >= query->first_k && (query->last_k == 0 || k <= query->last_k);
}

static void start_list(void *argument);

static void fail(struct window_list *list, const struct error *error)
{
    list->failed = true;
    list->error = *error;
    error_prefix(&list->error, "the manifests under %s can't be listed", list->folder);
}

static void got_page(void *argument, const struct error *error, const struct listed_object *objects, size_t count,
                     const char *next)
{
    struct window_list *list = argument;

    if (error->code != QS_OK) {
        if (try_again(&list->listing, error, start_list, list)) {
            return;
        }
        fail(list, error);
        proceed(list);
        return;
    }
    list->listing.call = NULL;
    list->listing.tries = 0;
    free(list->token);
    list->token = memory_copy_text(next);
    list->page = memory_grow(list->page, &list->page_capacity, count, sizeof *list->page);
    list->page_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct window_key *window = &list->page[list->page_count];
        if (parse_key(list, objects[i].key, &window->k) && is_asked_for(&list->query, window->k)) {
            window->size = objects[i].size;
            list->page_count++;
        }
    }
    list->page_next = 0;
    list->bracketed = false;
    list->listed = true;
    proceed(list);
}

static void start_list(void *argument)
{
    struct window_list *list = argument;
    const struct object_store_operations *operations = list->store->operations;

    list->listing.call = operations->list(list->store, list->folder, list->token, got_page, list);
}

/* ---- the search for the first ---- */

/* One step of it on the page at hand; false where it waits for a manifest. */
static bool seek_step(struct window_list *list)
{
    size_t last = list->page_count - 1;

    if (list->count > 0) {
        const struct slot *slot = &list->slots[list->head];
        if (!slot->done) {
            return false;
        }
        bool is_after = !slot->whole || slot->manifest.bounds.end.v > list->query.since.v;
        free_head(list);
        if (!list->bracketed) {
            /* That was the page's last window. */
            list->bracketed = true;
            list->low = is_after ? 0 : list->page_count;
            list->high = is_after ? last : list->page_count;
        } else if (is_after) {
            list->high = list->low + (list->high - list->low) / 2;
        } else {
            list->low = list->low + (list->high - list->low) / 2 + 1;
        }
    } else if (!list->bracketed) {
        fetch(list, &list->page[last]);
        return false;
    }
    if (list->low < list->high) {
        fetch(list, &list->page[list->low + (list->high - list->low) / 2]);
        return false;
    }
    list->page_next = list->low;
    list->sought = list->low < list->page_count;
    return true;
}

/* ---- all of it ---- */

static bool can_take(const struct window_list *list)
{
    if (list->sought && list->count > 0) {
        return list->slots[list->head].done;
    }
    return list->failed || list->ended;
}

/* Begins whatever can be begun, and tells who waits. Nothing of the list is touched after that. */
static void proceed(struct window_list *list)
{
    while (list->listed && !list->ended && !list->failed) {
        if (list->page_next < list->page_count && !list->sought && !seek_step(list)) {
            break;
        }
        while (list->sought && list->page_next < list->page_count && list->count < SLOT_COUNT &&
               (list->count == 0 || list->ahead < AHEAD_MAX)) {
            fetch(list, &list->page[list->page_next++]);
        }
        if (list->page_next < list->page_count) {
            break;
        }
        bool is_past =
            list->page_count > 0 && list->query.last_k != 0 && list->page[list->page_count - 1].k >= list->query.last_k;
        if (list->token == NULL || is_past) {
            list->ended = list->count == 0;
            break;
        }
        list->listed = false;
        start_list(list);
    }
    if (list->waiting && can_take(list)) {
        list->waiting = false;
        list->ready(list->argument);
    }
}

/* The list has no further window. */
static void end(struct window_list *list)
{
    stop_attempt(&list->listing);
    while (list->count > 0) {
        free_head(list);
    }
    list->ended = true;
}

static void drop_taken(struct window_list *list)
{
    if (list->taken) {
        free_head(list);
        list->taken = false;
        proceed(list);
    }
}

enum window_list_state window_list_take(struct window_list *list, struct window_entry *entry, struct error *error)
{
    list->waiting = false;
    drop_taken(list);
    while (list->count > 0 && can_take(list)) {
        const struct slot *slot = &list->slots[list->head];
        const struct window_bounds *bounds = &slot->manifest.bounds;
        if (slot->whole && list->query.has_until && bounds->start.v >= list->query.until.v) {
            end(list);
            break;
        }
        list->taken = true;
        if (slot->whole && list->query.has_since && bounds->end.v <= list->query.since.v) {
            drop_taken(list);
            continue;
        }
        *entry = (struct window_entry){slot->window.k, slot->key, slot->whole ? &slot->manifest : NULL, slot->error};
        return WINDOW_LIST_WINDOW;
    }
    if (list->failed && list->count == 0) {
        if (error != NULL) {
            *error = list->error;
        }
        return WINDOW_LIST_FAILED;
    }
    list->waiting = !list->ended;
    return list->ended ? WINDOW_LIST_END : WINDOW_LIST_WAIT;
}

struct window_list *window_list_open(struct reactor *reactor, struct object_store *store,
                                     const struct window_query *query, window_list_ready *ready, void *argument,
                                     struct error *error)
{
    char escaped[LAKE_NAME_SIZE];
    char folder[LAKE_KEY_SIZE];

    lake_escape_name(query->queue, escaped);
    if (lake_manifest_key(query->prefix, escaped, 0, folder, error) != 0) {
        return NULL;
    }
    struct window_list *list = memory_new(1, sizeof *list);
    *(strrchr(folder, '/') + 1) = '\0';
    memcpy(list->folder, folder, sizeof folder);
    memcpy(list->queue, escaped, sizeof escaped);
    list->reactor = reactor;
    list->store = store;
    list->ready = ready;
    list->argument = argument;
    list->prefix = memory_copy_text(query->prefix);
    list->queue_name = memory_copy(query->queue.bytes, query->queue.size);
    list->queue_size = query->queue.size;
    list->query = *query;
    list->sought = !query->has_since;
    list->listing.list = list;
    start_list(list);
    return list;
}

void window_list_close(struct window_list *list)
{
    if (list == NULL) {
        return;
    }
    end(list);
    free(list->token);
    free(list->page);
    free(list->prefix);
    free(list->queue_name);
    free(list);
}
