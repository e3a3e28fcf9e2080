/*
 * Counting calls; see stats.h for the contract.
 */
#include "stats.h"

#include "clock.h"

static const char *const route_names[ROUTE_COUNT] = {"fetch", "changed",   "kv",     "queues",
                                                     "push",  "configure", "delete", "other"};

void stats_start(struct stats *stats)
{
    *stats = (struct stats){.since_mono_ms = clock_mono_ms()};
    pthread_mutex_init(&stats->lock, NULL);
}

void stats_end(struct stats *stats)
{
    pthread_mutex_destroy(&stats->lock);
}

void stats_reset(struct stats *stats)
{
    pthread_mutex_lock(&stats->lock);
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        int64_t open = stats->routes[i].open;

        stats->routes[i] = (struct route_stats){.open = open, .open_maximum = open};
    }
    stats->open_maximum = stats->open;
    stats->since_mono_ms = clock_mono_ms();
    pthread_mutex_unlock(&stats->lock);
}

static void count_open(int64_t *open, int64_t *maximum)
{
    ++*open;
    *maximum = *open > *maximum ? *open : *maximum;
}

void stats_open(struct stats *stats, enum route route)
{
    pthread_mutex_lock(&stats->lock);
    stats->routes[route].calls++;
    count_open(&stats->routes[route].open, &stats->routes[route].open_maximum);
    count_open(&stats->open, &stats->open_maximum);
    pthread_mutex_unlock(&stats->lock);
}

void stats_close(struct stats *stats, enum route route, bool error, int64_t entries, int64_t bytes)
{
    pthread_mutex_lock(&stats->lock);
    stats->routes[route].open--;
    stats->routes[route].errors += error;
    stats->routes[route].entries += entries;
    stats->routes[route].bytes += bytes;
    stats->open--;
    pthread_mutex_unlock(&stats->lock);
}

const char *stats_route_name(enum route route)
{
    return route_names[route];
}

void stats_list(struct stats *stats, struct text *text)
{
    pthread_mutex_lock(&stats->lock);
    text_add_format(text, "{\"elapsedMs\":%lld,\"open\":%lld,\"openMaximum\":%lld,\"routes\":{",
                    (long long)(clock_mono_ms() - stats->since_mono_ms), (long long)stats->open,
                    (long long)stats->open_maximum);
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        const struct route_stats *route = &stats->routes[i];

        text_add_format(text,
                        "%s\"%s\":{\"calls\":%lld,\"errors\":%lld,\"open\":%lld,\"openMaximum\":%lld,"
                        "\"entries\":%lld,\"bytes\":%lld}",
                        i == 0 ? "" : ",", route_names[i], (long long)route->calls, (long long)route->errors,
                        (long long)route->open, (long long)route->open_maximum, (long long)route->entries,
                        (long long)route->bytes);
    }
    text_add_string(text, "}}");
    pthread_mutex_unlock(&stats->lock);
}
