/*
 * A finished file on its way up, and what follows (seed, "How it works"; spec 5.2): where it fails for good and was
 * confirmed before, a marker under `<key>.lost` says what went; where a key goes up that such a marker speaks of, the
 * marker goes.
 */
#ifndef WORKER_CONNECTOR_PLUGIN_FLIGHT_H
#define WORKER_CONNECTOR_PLUGIN_FLIGHT_H

#include <pthread.h>

#include "worker/connector/plugin/network.h"

/* Keys for which a marker was written, the latest LOST_KEYS_MAX. Any thread. */
#define LOST_KEYS_MAX 256
struct lost_keys {
    pthread_mutex_t lock;
    char *keys[LOST_KEYS_MAX];
    size_t count;
    uint64_t records; /* lost since the sink was opened */
};
void lost_keys_init(struct lost_keys *lost);
void lost_keys_free(struct lost_keys *lost);

enum flight_result {
    FLIGHT_UP,
    FLIGHT_LOST, /* for good; the marker is written, or there was no way */
    FLIGHT_CUT   /* the sink is being closed, and the attempts were not used up: the file can go up later */
};

/* Zero it, set the first part, and leave it alone from flight_start() to done(). */
struct flight {
    const struct sink_options *options;
    struct network *network;
    struct lost_keys *lost;
    struct sink_shape shape;
    bool marker;             /* its records were confirmed: losing them leaves one */
    uint32_t max_attempts;   /* 0: for ever */
    struct open_file file;   /* finished */
    struct object_body body; /* of the file: sink_bucket_body() */
    char key[SINK_KEY_MAX + 1];
    void (*done)(struct flight *flight); /* on the network's thread, which may not be held up */
    void *argument;
    /* What came of it. */
    enum flight_result result;
    struct error error; /* where it is not up */
    /* The flight's. */
    struct network_job job;
    char other_key[SINK_KEY_MAX + 8]; /* the marker's */
    char marker_text[768];
    struct sink_body marker_body;
};

void flight_start(struct flight *flight);
/* After FLIGHT_CUT: there won't be another attempt. It is lost, and its marker is written as after any failure. */
void flight_lose(struct flight *flight);
/* Frees what the file holds. */
void flight_clear(struct flight *flight);

#endif
