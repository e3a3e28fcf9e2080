/* The status page: page.h. */
#include "supervisor/page.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "common/visible.h"
#include "supervisor/page_style.h"
#include "supervisor/show.h"

#define HASH_SIZE   32
#define BASE64_SIZE 45 /* of HASH_SIZE bytes, with its NUL */

/* ---- text in HTML ---- */

/* In an element or between double quotes. */
static void add_text(struct byte_buffer *page, const char *text)
{
    char *shown = visible_text(text);

    for (const char *at = shown; *at != '\0'; at++) {
        switch (*at) {
        case '&': byte_buffer_add_text(page, "&amp;"); break;
        case '<': byte_buffer_add_text(page, "&lt;"); break;
        case '>': byte_buffer_add_text(page, "&gt;"); break;
        case '"': byte_buffer_add_text(page, "&quot;"); break;
        case '\'': byte_buffer_add_text(page, "&#39;"); break;
        default: byte_buffer_add(page, at, 1);
        }
    }
    free(shown);
}

/* class and label are the page's own; a NULL text is one that isn't known. */
static void add_cell(struct byte_buffer *page, const char *class, const char *label, const char *text)
{
    byte_buffer_add_format(page, "<td class=\"%s\" data-l=\"%s\">", class, label);
    add_text(page, text != NULL ? text : "–");
    byte_buffer_add_text(page, "</td>");
}

static void add_number_cell(struct byte_buffer *page, const char *label, int64_t number)
{
    char digits[SHOW_SIZE];

    (void)snprintf(digits, sizeof digits, "%" PRId64, number);
    add_cell(page, "n", label, number >= 0 ? digits : NULL);
}

static void add_count_cell(struct byte_buffer *page, const char *label, uint64_t count)
{
    add_number_cell(page, label, count < INT64_MAX ? (int64_t)count : INT64_MAX);
}

static void add_state(struct byte_buffer *page, const char *label, const char *colour, const char *state)
{
    byte_buffer_add_format(page, "<td data-l=\"%s\"><span class=\"state %s\">", label, colour);
    add_text(page, state);
    byte_buffer_add_text(page, "</span></td>");
}

static void add_fact(struct byte_buffer *page, const char *name, const char *text)
{
    byte_buffer_add_format(page, "<div><dt>%s</dt><dd>", name);
    add_text(page, text);
    byte_buffer_add_text(page, "</dd></div>");
}

static bool is(const char *text, const char *other)
{
    return strcmp(text, other) == 0;
}

/* ---- the head ---- */

static size_t connectors_down(const struct snapshot *snapshot)
{
    size_t down = 0;

    for (size_t i = 0; i < snapshot->connector_count; i++) {
        down += !snapshot->connectors[i].running;
    }
    return down;
}

static void add_verdict(struct byte_buffer *page, const struct snapshot *snapshot)
{
    const char *plural = snapshot->queue_count == 1 ? "" : "s";

    if (snapshot->late_count > 0) {
        byte_buffer_add_format(page, "<p class=\"verdict bad\">%" PRIu64 " of %zu queue%s late</p>",
                               snapshot->late_count, snapshot->queue_count, plural);
    } else if (!is(snapshot->phase, "running")) {
        byte_buffer_add_text(page, "<p class=\"verdict warn\">");
        add_text(page, snapshot->phase);
        byte_buffer_add_text(page, "</p>");
    } else if (connectors_down(snapshot) > 0) {
        byte_buffer_add_format(page, "<p class=\"verdict bad\">%zu of %zu connector%s down</p>",
                               connectors_down(snapshot), snapshot->connector_count,
                               snapshot->connector_count == 1 ? "" : "s");
    } else if (snapshot->queue_count == 0) {
        byte_buffer_add_format(page, "<p class=\"verdict good\">%s</p>",
                               snapshot->connector_count > 0 ? "connectors alone" : "no queue yet");
    } else {
        byte_buffer_add_format(page, "<p class=\"verdict good\">%zu queue%s on time</p>", snapshot->queue_count,
                               plural);
    }
}

static void add_facts(struct byte_buffer *page, const struct snapshot *snapshot)
{
    char text[3 * SHOW_SIZE];
    uint64_t buffered = 0;
    uint64_t resident = 0;
    size_t running = 0;

    for (size_t i = 0; i < snapshot->worker_count; i++) {
        resident += snapshot->workers[i].resident_bytes;
        running += is(snapshot->workers[i].phase, "running");
    }
    for (size_t i = 0; i < snapshot->queue_count; i++) {
        buffered += snapshot->queues[i].buffered_bytes;
    }
    for (size_t i = 0; i < snapshot->connector_count; i++) {
        buffered += snapshot->connectors[i].buffered_bytes;
    }
    byte_buffer_add_text(page, "<dl>");
    add_fact(page, "Instance", snapshot->instance);
    show_stretch(snapshot->uptime_ms, text);
    add_fact(page, "Up", text);
    (void)snprintf(text, sizeof text, "%zu of %zu running", running, snapshot->worker_count);
    add_fact(page, "Workers", text);
    show_bytes(resident, text);
    add_fact(page, "Memory of workers", text);
    show_bytes(buffered, text);
    add_fact(page, "Buffered", text);
    show_stretch(snapshot->limit_ms, text);
    add_fact(page, "Late after", text);
    add_fact(page, "Version", snapshot->version);
    byte_buffer_add_text(page, "</dl>");
}

static void add_head(struct byte_buffer *page, const struct snapshot *snapshot)
{
    byte_buffer_add_format(page,
                           "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
                           "<meta http-equiv=\"refresh\" content=\"%d\"><title>",
                           PAGE_REFRESH_S);
    if (snapshot->late_count > 0) {
        byte_buffer_add_format(page, "(%" PRIu64 " late) ", snapshot->late_count);
    }
    add_text(page, snapshot->sink);
    byte_buffer_add_format(page, " · queen-s3</title><style>%s</style></head>\n<body><header><h1><b>", page_style);
    add_text(page, snapshot->sink);
    byte_buffer_add_text(page, "</b> <span>queen-s3</span></h1>");
    add_verdict(page, snapshot);
    byte_buffer_add_text(page, "</header>\n");
    add_facts(page, snapshot);
}

/* ---- queues ---- */

static void add_time_cell(struct byte_buffer *page, const char *label, const char *time)
{
    char text[SHOW_SIZE];

    if (time != NULL) {
        show_time(time, text);
    }
    add_cell(page, "n", label, time != NULL ? text : NULL);
}

static const char *state_colour(const struct snapshot_queue *queue)
{
    if (queue->late || is(queue->state, "stopped")) {
        return "bad";
    }
    if (is(queue->state, "running") && queue->error == NULL) {
        return "good";
    }
    return is(queue->state, "standby") || is(queue->state, "drained") ? "soft" : "warn";
}

static void add_owner(struct byte_buffer *page, const struct snapshot *snapshot, const struct snapshot_queue *queue)
{
    char worker[SHOW_SIZE];

    (void)snprintf(worker, sizeof worker, "worker %" PRIu64, queue->worker);
    add_cell(page, "owner", "Owner",
             queue->owner == NULL || is(queue->owner, snapshot->instance) ? worker : queue->owner);
}

static void add_queue(struct byte_buffer *page, const struct snapshot *snapshot, const struct snapshot_queue *queue)
{
    char text[SHOW_SIZE];
    char *reason = snapshot_reason(snapshot, queue);

    byte_buffer_add_text(page, queue->late ? "<tbody class=\"late\"><tr><td class=\"name\">"
                                           : "<tbody><tr><td class=\"name\">");
    add_text(page, queue->name);
    byte_buffer_add_text(page, "</td>");
    add_state(page, "State", state_colour(queue), queue->state);
    add_owner(page, snapshot, queue);
    add_number_cell(page, "Window", queue->k);
    add_time_cell(page, "Committed to (UTC)", queue->end);
    show_stretch(snapshot_lag_ms(queue), text);
    add_cell(page, "n", "Lag", queue->has_lag ? text : NULL);
    show_bytes(queue->buffered_bytes, text);
    add_cell(page, "n", "Buffered", text);
    byte_buffer_add_text(page, "</tr>");
    if (reason != NULL) {
        byte_buffer_add_text(page, "<tr class=\"why\"><td colspan=\"7\">");
        add_text(page, reason);
        byte_buffer_add_text(page, "</td></tr>");
    }
    byte_buffer_add_text(page, "</tbody>\n");
    free(reason);
}

static void add_queues(struct byte_buffer *page, const struct snapshot *snapshot)
{
    size_t shown = 0;

    if (snapshot->queue_count == 0 && snapshot->connector_count > 0) {
        return;
    }
    byte_buffer_add_format(page, "<h2>Queues <span>%zu</span></h2>\n", snapshot->queue_count);
    if (snapshot->queue_count == 0) {
        return;
    }
    byte_buffer_add_text(page,
                         "<table class=\"queues\"><thead><tr><th>Queue</th><th>State</th><th>Owner</th>"
                         "<th class=\"n\">Window</th><th class=\"n\">Committed to (UTC)</th><th class=\"n\">Lag</th>"
                         "<th class=\"n\">Buffered</th></tr></thead>\n");
    for (; shown < snapshot->queue_count && shown < PAGE_QUEUES_MAX; shown++) {
        add_queue(page, snapshot, &snapshot->queues[shown]);
    }
    byte_buffer_add_text(page, "</table>\n");
    if (shown < snapshot->queue_count) {
        byte_buffer_add_format(page, "<p>and %zu more; <code>queen-s3 status</code> shows all of them</p>\n",
                               snapshot->queue_count - shown);
    }
}

/* ---- workers ---- */

static const char *phase_colour(const char *phase)
{
    return is(phase, "running")                                               ? "good"
           : is(phase, "backoff") || is(phase, "silent") || is(phase, "down") ? "bad"
                                                                              : "warn";
}

static void add_last_exit(struct byte_buffer *page, const struct snapshot *snapshot,
                          const struct snapshot_worker *worker)
{
    char age[SHOW_SIZE];
    char again[SHOW_SIZE];

    if (worker->last_exit == NULL) {
        add_cell(page, "", "Last exit", NULL);
        return;
    }
    show_stretch(snapshot_age_ms(snapshot, worker->last_exit_at), age);
    show_stretch(worker->backoff_ms, again);
    byte_buffer_add_text(page, "<td data-l=\"Last exit\">");
    add_text(page, worker->last_exit);
    byte_buffer_add_format(page, ", %s ago", age);
    if (worker->backoff_ms > 0) {
        byte_buffer_add_format(page, "; again in %s", again);
    }
    byte_buffer_add_text(page, "</td>");
}

static void add_worker(struct byte_buffer *page, const struct snapshot *snapshot, const struct snapshot_worker *worker)
{
    char text[SHOW_SIZE];

    byte_buffer_add_format(page, "<tbody><tr><td class=\"name\">worker %" PRIu64 "</td>", worker->number);
    add_state(page, "Phase", phase_colour(worker->phase), worker->phase);
    add_number_cell(page, "Pid", worker->pid > 0 ? worker->pid : -1);
    show_stretch(worker->uptime_ms, text);
    add_cell(page, "n", "Up", worker->pid > 0 ? text : NULL);
    show_bytes(worker->resident_bytes, text);
    add_cell(page, "n", "Memory", worker->pid > 0 ? text : NULL);
    add_number_cell(page, "Queues", (int64_t)worker->queue_count);
    add_number_cell(page, "Restarts", (int64_t)worker->restarts);
    add_last_exit(page, snapshot, worker);
    byte_buffer_add_text(page, "</tr></tbody>\n");
}

/* By number; of a pool with more than there is room for, those that aren't running first. */
static void add_workers(struct byte_buffer *page, const struct snapshot *snapshot)
{
    bool all = snapshot->worker_count <= PAGE_WORKERS_MAX;
    size_t shown = 0;

    byte_buffer_add_format(page, "<h2>Workers <span>%zu</span></h2>\n", snapshot->worker_count);
    if (snapshot->worker_count == 0) {
        return;
    }
    byte_buffer_add_text(page,
                         "<table class=\"workers\"><thead><tr><th>Worker</th><th>Phase</th><th class=\"n\">Pid</th>"
                         "<th class=\"n\">Up</th><th class=\"n\">Memory</th><th class=\"n\">Queues</th>"
                         "<th class=\"n\">Restarts</th><th>Last exit</th></tr></thead>\n");
    for (int round = all ? 1 : 0; round < 2; round++) {
        for (size_t i = 0; i < snapshot->worker_count && shown < PAGE_WORKERS_MAX; i++) {
            if (all || is(snapshot->workers[i].phase, "running") == (round == 1)) {
                add_worker(page, snapshot, &snapshot->workers[i]);
                shown++;
            }
        }
    }
    byte_buffer_add_text(page, "</table>\n");
    if (shown < snapshot->worker_count) {
        byte_buffer_add_format(page, "<p>and %zu more</p>\n", snapshot->worker_count - shown);
    }
}

/* ---- connectors ---- */

static void add_connector(struct byte_buffer *page, const struct snapshot_connector *connector)
{
    char text[SHOW_SIZE];

    byte_buffer_add_text(page, connector->running ? "<tbody><tr><td class=\"name\">"
                                                  : "<tbody class=\"late\"><tr><td class=\"name\">");
    add_text(page, connector->key != NULL ? connector->key : "–");
    byte_buffer_add_text(page, "</td>");
    add_state(page, "State", connector->running ? "good" : "bad", connector->running ? "running" : "down");
    (void)snprintf(text, sizeof text, "worker %" PRId64, connector->worker);
    add_cell(page, "owner", "Owner", connector->worker >= 0 ? text : NULL);
    add_count_cell(page, "Partitions", connector->partitions);
    add_count_cell(page, "Consumed", connector->consumed);
    add_count_cell(page, "Processed", connector->processed);
    show_bytes(connector->buffered_bytes, text);
    add_cell(page, "n", "Buffered", text);
    byte_buffer_add_text(page, "</tr>");
    if (connector->reason != NULL) {
        byte_buffer_add_text(page, "<tr class=\"why\"><td colspan=\"7\">");
        add_text(page, connector->reason);
        byte_buffer_add_text(page, "</td></tr>");
    }
    byte_buffer_add_text(page, "</tbody>\n");
}

/* A pool without any says nothing of them. Those that are down come first. */
static void add_connectors(struct byte_buffer *page, const struct snapshot *snapshot)
{
    size_t shown = 0;

    if (snapshot->connector_count == 0) {
        return;
    }
    byte_buffer_add_format(page,
                           "<h2>Connectors <span>%zu</span></h2>\n<table class=\"connectors\"><thead><tr>"
                           "<th>Connector</th><th>State</th><th>Owner</th><th class=\"n\">Partitions</th>"
                           "<th class=\"n\">Consumed</th><th class=\"n\">Processed</th><th class=\"n\">Buffered</th>"
                           "</tr></thead>\n",
                           snapshot->connector_count);
    for (int running = 0; running < 2; running++) {
        for (size_t i = 0; i < snapshot->connector_count && shown < PAGE_CONNECTORS_MAX; i++) {
            if (snapshot->connectors[i].running == (running == 1)) {
                add_connector(page, &snapshot->connectors[i]);
                shown++;
            }
        }
    }
    byte_buffer_add_text(page, "</table>\n");
    if (shown < snapshot->connector_count) {
        byte_buffer_add_format(page, "<p>and %zu more; <code>queen-s3 status</code> shows all of them</p>\n",
                               snapshot->connector_count - shown);
    }
}

char *page_write(const struct snapshot *snapshot)
{
    struct byte_buffer page = {0};
    char time[SHOW_SIZE];

    add_head(&page, snapshot);
    byte_buffer_add_text(&page, "<main>\n");
    add_queues(&page, snapshot);
    add_connectors(&page, snapshot);
    add_workers(&page, snapshot);
    show_time(snapshot->at, time);
    byte_buffer_add_text(&page, "</main><footer><p>As of ");
    add_text(&page, time);
    byte_buffer_add_format(
        &page,
        " UTC, anew every %d s · <a href=\"/healthz\">/healthz</a> · <a href=\"/metrics\">/metrics</a>"
        "</p></footer></body></html>\n",
        PAGE_REFRESH_S);
    return byte_buffer_take(&page);
}

const char *page_security_policy(void)
{
    static char policy[256];
    unsigned char hash[HASH_SIZE];
    unsigned char spelled[BASE64_SIZE];

    if (policy[0] == '\0' && EVP_Digest(page_style, sizeof page_style - 1, hash, NULL, EVP_sha256(), NULL) == 1) {
        (void)EVP_EncodeBlock(spelled, hash, sizeof hash);
        (void)snprintf(policy, sizeof policy,
                       "default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'; "
                       "frame-ancestors 'none'",
                       (const char *)spelled);
    }
    return policy[0] != '\0' ? policy : "default-src 'none'";
}
