/* Calls, time and the ends of a scripted world: see scripted_world.h. */
#include "scripted_world.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "common/memory.h"

#define TURNS_MAX 20000 /* of a test that goes round and round */

static struct mono_ms world_now(struct world *world)
{
    return (struct mono_ms){((struct scripted_world *)world)->now};
}

static struct wall_ms world_wall(struct world *world)
{
    struct scripted_world *w = (struct scripted_world *)world;
    return (struct wall_ms){w->wall + w->now};
}

static uint64_t world_random(struct world *world)
{
    return ((struct scripted_world *)world)->random;
}

static void world_crash(struct world *world, enum crash_point point)
{
    static const char *const names[] = {"never",        "after_intent",  "mid_upload",
                                        "after_upload", "before_commit", "after_commit"};
    struct scripted_call *call = call_new((struct scripted_world *)world, CALL_CRASH, NULL);
    call_spell(call, "crash %s", names[point]);
    call->open = false;
}

void scripted_world_begin(struct scripted_world *w)
{
    *w = (struct scripted_world){
        .world = {.now = world_now, .wall = world_wall, .random = world_random, .crash = world_crash},
        .queen = {&scripted_queen_operations},
        .store = {&scripted_store_operations},
        .encoder = {&scripted_encoder_operations, false},
        .budget = {.limit = (size_t)1 << 30},
        .now = 1000000,
        .wall = 1788000000000,
        .part_size = OBJECT_PART_SIZE};
    timers_init(&w->timers);
    w->world.queen = &w->queen;
    w->world.store = &w->store;
    w->world.encoder = &w->encoder;
    w->world.timers = &w->timers;
    w->world.budget = &w->budget;
}

static void call_free(struct scripted_call *call)
{
    if (call->kind == CALL_KV)
        document_batch_free(&call->batch);
    free(call->entries);
    free(call->key);
    free(call->bytes);
    free(call);
}

void scripted_world_end(struct scripted_world *w)
{
    struct mono_ms deadline;
    /* Aborts and removals are sent and forgotten. */
    world_settle(w, ~(KIND(CALL_ABORT) | KIND(CALL_REMOVE)));
    for (size_t i = 0; i < w->call_count; i++) {
        ck_assert_msg(!w->calls[i]->open, "left under way: %s", w->calls[i]->text);
        call_free(w->calls[i]);
    }
    ck_assert_msg(!timers_next(&w->timers, &deadline), "a timer is left");
    ck_assert_uint_eq(w->jobs, 0);
    ck_assert_uint_eq(w->budget.used, 0);
    free(w->calls);
    timers_free(&w->timers);
    budget_close(&w->budget);
    documents_free(&w->documents);
    bucket_free(&w->bucket);
}

/* ---- calls ---- */

struct scripted_call *call_new(struct scripted_world *w, enum scripted_kind kind, void *argument)
{
    struct scripted_call *call = memory_new(1, sizeof *call);
    call->kind = kind;
    call->world = w;
    call->argument = argument;
    call->open = true;
    w->calls = memory_grow(w->calls, &w->call_capacity, w->call_count + 1, sizeof *w->calls);
    w->calls[w->call_count++] = call;
    return call;
}

void call_spell(struct scripted_call *call, const char *format, ...)
{
    size_t used = strlen(call->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(call->text + used, sizeof call->text - used, format, arguments);
    va_end(arguments);
}

void call_close(struct scripted_call *call)
{
    ck_assert_msg(call->open, "answered twice, or after it was cancelled: %s", call->text);
    call->open = false;
}

void call_cancel(struct scripted_call *call)
{
    call_close(call);
    call->cancelled = true;
    if (call->kind == CALL_FETCH)
        budget_give(&call->world->budget, call->reserved);
}

static bool is_spelled(const struct scripted_call *call, const char *text)
{
    size_t size = strlen(text);
    if (size > 0 && text[size - 1] == '*')
        return strncmp(call->text, text, size - 1) == 0;
    return strcmp(call->text, text) == 0;
}

static struct scripted_call *find_open(const struct scripted_world *w, const char *text)
{
    for (size_t i = 0; i < w->call_count; i++)
        if (w->calls[i]->open && is_spelled(w->calls[i], text))
            return w->calls[i];
    return NULL;
}

struct scripted_call *world_call(struct scripted_world *w, const char *text)
{
    struct scripted_call *call = find_open(w, text);
    if (call == NULL) {
        struct byte_buffer open = {0};
        for (size_t i = 0; i < w->call_count; i++)
            if (w->calls[i]->open)
                byte_buffer_add_format(&open, "  %s\n", w->calls[i]->text);
        ck_abort_msg("no call \"%s\" is open; there are:\n%s", text, open.bytes != NULL ? open.bytes : "  none\n");
    }
    return call;
}

bool world_has_call(const struct scripted_world *w, const char *text)
{
    return find_open(w, text) != NULL;
}

size_t world_open_calls(const struct scripted_world *w)
{
    size_t count = 0;
    for (size_t i = 0; i < w->call_count; i++)
        count += w->calls[i]->open;
    return count;
}

size_t world_count(const struct scripted_world *w, const char *text)
{
    size_t count = 0;
    for (size_t i = 0; i < w->call_count; i++)
        count += is_spelled(w->calls[i], text);
    return count;
}

void world_mark(struct scripted_world *w)
{
    w->mark = w->call_count;
}

const char *world_trace(struct scripted_world *w, uint32_t kinds)
{
    static struct byte_buffer trace;
    byte_buffer_clear(&trace);
    byte_buffer_add_text(&trace, "");
    for (size_t i = w->mark; i < w->call_count; i++)
        if ((KIND(w->calls[i]->kind) & kinds) != 0)
            byte_buffer_add_format(&trace, "%s\n", w->calls[i]->text);
    return trace.bytes;
}

/* ---- answers ---- */

static void deliver(struct scripted_call *call, bool apply, const struct error *error)
{
    ck_assert_msg(call->open, "answered twice, or after it was cancelled: %s", call->text);
    if ((KIND(call->kind) & BROKER_ALL) != 0)
        queen_deliver(call, apply, error);
    else if (call->kind == CALL_ENCODE)
        encoder_deliver(call, error);
    else
        store_deliver(call, apply, error);
}

static const struct error no_error = {.retry_after_ms = -1};

void call_answer(struct scripted_call *call)
{
    deliver(call, true, &no_error);
}

void call_fail_after(struct scripted_call *call, enum qs_error code, int status, int64_t retry_after_ms)
{
    struct error error;
    error_set(&error, code, "%s: scripted failure %d", call->text, status);
    error.status = status;
    error.retry_after_ms = retry_after_ms;
    deliver(call, false, &error);
}

void call_fail(struct scripted_call *call, enum qs_error code, int status)
{
    call_fail_after(call, code, status, -1);
}

void call_lose(struct scripted_call *call)
{
    struct error error;
    error_set(&error, QS_ERROR_TRANSPORT, "the answer was lost");
    deliver(call, true, &error);
}

/* ---- time ---- */

static struct scripted_call *next_to_answer(const struct scripted_world *w, uint32_t held)
{
    for (size_t i = 0; i < w->call_count; i++)
        if (w->calls[i]->open && (KIND(w->calls[i]->kind) & held) == 0)
            return w->calls[i];
    return NULL;
}

int64_t world_next_timer(const struct scripted_world *w)
{
    struct mono_ms deadline;
    if (!timers_next(&w->timers, &deadline))
        return -1;
    return deadline.v > w->now ? deadline.v - w->now : 0;
}

void world_settle(struct scripted_world *w, uint32_t held)
{
    for (int turn = 0; turn < TURNS_MAX; turn++) {
        struct scripted_call *call = next_to_answer(w, held);
        if (call != NULL)
            call_answer(call);
        else if (world_next_timer(w) == 0)
            timers_run(&w->timers, world_now(&w->world));
        else
            return;
    }
    ck_abort_msg("it goes round and round; lastly: %s", w->calls[w->call_count - 1]->text);
}

void world_run(struct scripted_world *w, int64_t milliseconds, uint32_t held)
{
    int64_t end = w->now + milliseconds;
    world_settle(w, held);
    for (int64_t next = world_next_timer(w); next >= 0 && w->now + next <= end; next = world_next_timer(w)) {
        w->now += next;
        world_settle(w, held);
    }
    w->now = end;
}

void world_take_line(void *argument, enum log_level level, const char *line)
{
    (void)level;
    (void)snprintf(argument, WORLD_LINE_SIZE, "%s", line);
}
