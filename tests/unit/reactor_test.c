/*
 * The event loop: deadlines, descriptors, and callbacks that change both.
 */
#include "common/reactor.h"

#include <check.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static struct reactor *reactor;

static void set_up(void)
{
    struct error error;
    reactor = reactor_create(&error);
    ck_assert_msg(reactor != NULL, "%s", error.message);
}

static void tear_down(void)
{
    reactor_destroy(reactor);
}

static void count_fire(void *argument)
{
    ++*(int *)argument;
}

static struct mono_ms from_now(int64_t milliseconds)
{
    return (struct mono_ms){clock_mono().v + milliseconds};
}

static int event_descriptor(unsigned value)
{
    int descriptor = eventfd(value, EFD_CLOEXEC | EFD_NONBLOCK);
    ck_assert_int_ge(descriptor, 0);
    return descriptor;
}

START_TEST(a_turn_ends_at_its_limit)
{
    struct mono_ms before = clock_mono();
    reactor_run_once(reactor, 30);
    ck_assert_int_ge(clock_mono().v - before.v, 30);
    ck_assert_int_ge(reactor_now(reactor).v, before.v + 30);
    before = clock_mono();
    reactor_run_once(reactor, 0);
    ck_assert_int_lt(clock_mono().v - before.v, 1000);
}
END_TEST

START_TEST(a_deadline_ends_a_wait_without_limit)
{
    struct timer timer = {0};
    int fired = 0;
    struct mono_ms deadline = from_now(20);
    timer_set(reactor_timers(reactor), &timer, deadline, count_fire, &fired);
    reactor_run_once(reactor, -1);
    ck_assert_int_eq(fired, 1);
    ck_assert_int_ge(reactor_now(reactor).v, deadline.v);
}
END_TEST

START_TEST(a_deadline_far_beyond_an_int_is_no_overflow)
{
    struct timer timer = {0};
    int fired = 0;
    timer_set(reactor_timers(reactor), &timer, (struct mono_ms){INT64_MAX}, count_fire, &fired);
    reactor_run_once(reactor, 1);
    reactor_run_once(reactor, 0);
    ck_assert_int_eq(fired, 0);
    timer_cancel(reactor_timers(reactor), &timer);
}
END_TEST

START_TEST(a_due_timer_does_not_wait)
{
    struct timer timer = {0};
    int fired = 0;
    timer_set(reactor_timers(reactor), &timer, (struct mono_ms){0}, count_fire, &fired);
    reactor_run_once(reactor, -1);
    ck_assert_int_eq(fired, 1);
}
END_TEST

struct seen {
    int calls;
    short events;
};

static void note_ready(void *argument, short events)
{
    struct seen *seen = argument;
    seen->calls++;
    seen->events = events;
}

START_TEST(a_watch_is_level_triggered_until_it_ends)
{
    int descriptor = event_descriptor(1);
    struct seen seen = {0};
    ck_assert_int_eq(reactor_watch(reactor, descriptor, POLLIN, note_ready, &seen), QS_OK);
    reactor_run_once(reactor, -1);
    reactor_run_once(reactor, -1);
    ck_assert_int_eq(seen.calls, 2);
    ck_assert_int_eq(seen.events, POLLIN);
    ck_assert_int_eq(reactor_watch(reactor, descriptor, 0, NULL, NULL), QS_OK);
    reactor_run_once(reactor, 0);
    ck_assert_int_eq(seen.calls, 2);
    close(descriptor);
}
END_TEST

START_TEST(a_further_watch_replaces_the_one_before)
{
    int descriptor = event_descriptor(1);
    struct seen first = {0};
    struct seen second = {0};
    ck_assert_int_eq(reactor_watch(reactor, descriptor, POLLIN, note_ready, &first), QS_OK);
    ck_assert_int_eq(reactor_watch(reactor, descriptor, POLLIN | POLLOUT, note_ready, &second), QS_OK);
    reactor_run_once(reactor, -1);
    ck_assert_int_eq(first.calls, 0);
    ck_assert_int_eq(second.events, POLLIN | POLLOUT);
    reactor_watch(reactor, descriptor, 0, NULL, NULL);
    close(descriptor);
}
END_TEST

START_TEST(a_hang_up_is_told)
{
    int ends[2];
    struct seen seen = {0};
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(reactor_watch(reactor, ends[0], POLLIN, note_ready, &seen), QS_OK);
    close(ends[1]);
    reactor_run_once(reactor, -1);
    ck_assert_int_eq(seen.events & POLLHUP, POLLHUP);
    reactor_watch(reactor, ends[0], 0, NULL, NULL);
    close(ends[0]);
}
END_TEST

START_TEST(a_descriptor_closed_while_watched_can_come_back)
{
    int descriptor = event_descriptor(1);
    struct seen old = {0};
    struct seen new = {0};
    ck_assert_int_eq(reactor_watch(reactor, descriptor, POLLIN, note_ready, &old), QS_OK);
    close(descriptor); /* with its watch still noted */
    int again = event_descriptor(1);
    ck_assert_int_eq(again, descriptor);
    ck_assert_int_eq(reactor_watch(reactor, again, POLLIN, note_ready, &new), QS_OK);
    reactor_run_once(reactor, -1);
    ck_assert_int_eq(old.calls, 0);
    ck_assert_int_eq(new.calls, 1);
    reactor_watch(reactor, again, 0, NULL, NULL);
    close(again);
}
END_TEST

START_TEST(what_cannot_be_watched_is_an_error)
{
    struct seen seen = {0};
    ck_assert_int_eq(reactor_watch(reactor, -1, POLLIN, note_ready, &seen), QS_ERROR_SYSTEM);
    ck_assert_int_eq(reactor_watch(reactor, 1000, POLLIN, note_ready, &seen), QS_ERROR_SYSTEM); /* not open */
    ck_assert_int_eq(reactor_watch(reactor, 1000, 0, NULL, NULL), QS_OK);
}
END_TEST

struct pair {
    int descriptors[2];
    int calls;
    struct seen reborn;
    int replacement;
};

/* Whichever comes first closes the other, and lets the next descriptor take its number. */
static void close_other(void *argument, short events)
{
    struct pair *pair = argument;
    (void)events;
    pair->calls++;
    for (int i = 0; i < 2; i++) {
        reactor_watch(reactor, pair->descriptors[i], 0, NULL, NULL);
        close(pair->descriptors[i]);
    }
    pair->replacement = event_descriptor(0);
    ck_assert(pair->replacement == pair->descriptors[0] || pair->replacement == pair->descriptors[1]);
    reactor_watch(reactor, pair->replacement, POLLIN, note_ready, &pair->reborn);
}

START_TEST(an_event_collected_for_a_closed_descriptor_is_not_handed_to_the_next)
{
    struct pair pair = {.descriptors = {event_descriptor(1), event_descriptor(1)}};
    reactor_watch(reactor, pair.descriptors[0], POLLIN, close_other, &pair);
    reactor_watch(reactor, pair.descriptors[1], POLLIN, close_other, &pair);
    reactor_run_once(reactor, -1);
    ck_assert_int_eq(pair.calls, 1);
    ck_assert_int_eq(pair.reborn.calls, 0);
    reactor_watch(reactor, pair.replacement, 0, NULL, NULL);
    close(pair.replacement);
}
END_TEST

struct many {
    int opened[300];
    size_t count;
};

static void watch_many(void *argument, short events)
{
    struct many *many = argument;
    (void)events;
    for (; many->count < 300; many->count++) {
        many->opened[many->count] = event_descriptor(0);
        ck_assert_int_eq(reactor_watch(reactor, many->opened[many->count], POLLIN, note_ready, NULL), QS_OK);
    }
}

START_TEST(a_callback_may_add_more_watches_than_there_was_room_for)
{
    struct many many = {0};
    int descriptor = event_descriptor(1);
    ck_assert_int_eq(reactor_watch(reactor, descriptor, POLLIN, watch_many, &many), QS_OK);
    reactor_run_once(reactor, -1);
    ck_assert_uint_eq(many.count, 300);
    for (size_t i = 0; i < many.count; i++) {
        reactor_watch(reactor, many.opened[i], 0, NULL, NULL);
        close(many.opened[i]);
    }
    reactor_watch(reactor, descriptor, 0, NULL, NULL);
    close(descriptor);
}
END_TEST

static void cancel_timer(void *argument)
{
    timer_cancel(reactor_timers(reactor), argument);
}

START_TEST(a_timer_can_cancel_one_that_is_due_in_the_same_turn)
{
    struct timer first = {0};
    struct timer second = {0};
    int fired = 0;
    timer_set(reactor_timers(reactor), &first, (struct mono_ms){1}, cancel_timer, &second);
    timer_set(reactor_timers(reactor), &second, (struct mono_ms){2}, count_fire, &fired);
    reactor_run_once(reactor, -1);
    reactor_run_once(reactor, 0);
    ck_assert_int_eq(fired, 0);
}
END_TEST

START_TEST(now_stands_still_while_callbacks_run)
{
    struct mono_ms before = reactor_now(reactor);
    while (clock_mono().v < before.v + 5) {
    }
    ck_assert_int_eq(reactor_now(reactor).v, before.v);
    reactor_run_once(reactor, 0);
    ck_assert_int_ge(reactor_now(reactor).v, before.v + 5);
}
END_TEST

START_TEST(idling_costs_no_processor)
{
    struct timespec before;
    struct timespec after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    struct mono_ms end = from_now(200);
    int turns = 0;
    for (int64_t left; (left = end.v - clock_mono().v) > 0; turns++) {
        reactor_run_once(reactor, left);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    ck_assert_int_le(turns, 3);
    ck_assert_int_lt((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000, 50);
}
END_TEST

START_TEST(destroying_nothing_is_nothing)
{
    reactor_destroy(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reactor");
    TCase *test = tcase_create("reactor");
    tcase_add_checked_fixture(test, set_up, tear_down);
    tcase_add_test(test, a_turn_ends_at_its_limit);
    tcase_add_test(test, a_deadline_ends_a_wait_without_limit);
    tcase_add_test(test, a_deadline_far_beyond_an_int_is_no_overflow);
    tcase_add_test(test, a_due_timer_does_not_wait);
    tcase_add_test(test, a_watch_is_level_triggered_until_it_ends);
    tcase_add_test(test, a_further_watch_replaces_the_one_before);
    tcase_add_test(test, a_hang_up_is_told);
    tcase_add_test(test, a_descriptor_closed_while_watched_can_come_back);
    tcase_add_test(test, what_cannot_be_watched_is_an_error);
    tcase_add_test(test, an_event_collected_for_a_closed_descriptor_is_not_handed_to_the_next);
    tcase_add_test(test, a_callback_may_add_more_watches_than_there_was_room_for);
    tcase_add_test(test, a_timer_can_cancel_one_that_is_due_in_the_same_turn);
    tcase_add_test(test, now_stands_still_while_callbacks_run);
    tcase_add_test(test, idling_costs_no_processor);
    tcase_add_test(test, destroying_nothing_is_nothing);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
