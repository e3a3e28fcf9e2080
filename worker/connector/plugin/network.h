/*
 * The thread on which a sink's network calls run: an event loop with the bucket. Every signal is blocked there, curl and
 * OpenSSL are touched on no other thread but for hashing, and nothing of it outlives network_stop().
 *
 * Jobs come from any thread. A job's done() runs on the network's thread with no lock held, must not block, and may
 * submit further jobs.
 */
#ifndef WORKER_CONNECTOR_PLUGIN_NETWORK_H
#define WORKER_CONNECTOR_PLUGIN_NETWORK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "worker/connector/plugin/host_log.h"
#include "worker/connector/upload.h"

struct network;

/* All but what is said to be the network's is set before network_submit() and stays until done(). */
struct network_job {
    const char *key;
    const char *content_type;
    const struct object_body *body; /* NULL: the object is removed */
    uint32_t max_attempts;          /* 0: for ever */
    int64_t second_delay_ms;
    bool patient; /* has its attempts whatever network_hurry() says */
    void (*done)(struct network_job *job);
    /* What came of it. */
    struct error error; /* clear: it is done */
    bool cut;           /* ended by network_hurry() or network_cancel_all(), before its attempts were used up */
    /* The network's. */
    struct network *network;
    TAILQ_ENTRY(network_job) link;
    struct sink_upload *upload;
    bool hurried;
};

/* options must outlive it. NULL: *error says why, and nothing is left. */
struct network *network_start(const struct sink_options *options, pico_log_fn log, struct error *error);
void network_submit(struct network *network, struct network_job *job);
/* Delays between attempts end at once, and attempts under way are the last: of jobs submitted before this call, but for
 * the patient. */
void network_hurry(struct network *network);
/* Ends every job submitted before this call. */
void network_cancel_all(struct network *network);
/* No job may be under way. The thread is gone afterwards. */
void network_stop(struct network *network);

/* Runs `work` on a thread with every signal blocked; 0 or an errno. What a plugin starts threads with. */
int network_start_thread(pthread_t *thread, void *(*work)(void *argument), void *argument);

#endif
