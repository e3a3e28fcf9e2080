/*
 * One open sink of the plugin (spec 5.1 to 5.3): its partitions, each with a file that is being filled, and what uploads
 * them. Any thread may call sink_consume(); one thread opens, one closes.
 *
 * Locks. The sink's lock guards the table of partitions and who has which; it is never held over formatting, a disk or
 * the network. A partition belongs to one call at a time, from partition_take() to partition_give(): two calls for one
 * topic and partition follow each other, all others run side by side.
 */
#ifndef WORKER_CONNECTOR_PLUGIN_SINK_H
#define WORKER_CONNECTOR_PLUGIN_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"
#include "worker/connector/options.h"
#include "worker/connector/plugin/host_log.h"

struct sink;

/* What pico_sink_open() answers. *opened is NULL unless it is 0; the reason is logged. */
int32_t sink_open(const uint8_t *config, size_t config_size, pico_log_fn log, struct sink **opened);

struct sink_batch {
    const uint8_t *topic;
    size_t topic_size;
    const uint8_t *batch;
    size_t batch_size;
    const uint8_t *messages;
    size_t messages_size;
};
/* What pico_sink_consume() answers. */
int32_t sink_consume(struct sink *sink, const struct sink_batch *batch);

/* In three steps, since calls under way end between the first and the last. From the first on no delay is waited out
 * and calls return soon; the second ends what is still in flight; the third, with no call left, puts up what is open,
 * at the latest by the deadline, and frees everything. */
#define SINK_CLOSE_MS      30000
#define SINK_CLOSE_CALL_MS 20000 /* of those, at most, for calls that still run */
void sink_close_begin(struct sink *sink);
void sink_close_press(struct sink *sink);
void sink_close_end(struct sink *sink, struct mono_ms deadline);

pico_log_fn sink_log(const struct sink *sink);

#endif
