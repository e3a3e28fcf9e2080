/* The table of a sink's partitions: sink_internal.h. Chained, doubled when it holds as many as it has places. */
#include <stdlib.h>
#include <string.h>

#include "worker/connector/plugin/sink_internal.h"

#define TABLE_MIN 16

static uint64_t hash_of(struct sink_slice topic, int32_t number)
{
    struct sink_record name = {.timestamp_ms = (uint32_t)number, .payload = topic};

    return sink_record_hash(&name);
}

/* Where memory is short, the chains just get longer. */
static bool grow(struct sink *sink)
{
    size_t size = sink->table_size > 0 ? 2 * sink->table_size : TABLE_MIN;
    struct partition_list *table = calloc(size, sizeof *table);

    if (table == NULL) {
        return sink->table_size > 0;
    }
    for (size_t i = 0; i < sink->table_size; i++) {
        struct sink_partition *partition;
        while ((partition = LIST_FIRST(&sink->table[i])) != NULL) {
            LIST_REMOVE(partition, link);
            LIST_INSERT_HEAD(&table[partition->hash & (size - 1)], partition, link);
        }
    }
    free(sink->table);
    sink->table = table;
    sink->table_size = size;
    return true;
}

/* A partition of another topic whose files get the keys of this one's. */
static const struct sink_partition *find_rival(const struct sink *sink, const struct sink_partition *partition)
{
    for (size_t i = 0; i < sink->table_size; i++) {
        for (const struct sink_partition *other = LIST_FIRST(&sink->table[i]); other != NULL;
             other = LIST_NEXT(other, link)) {
            if (other->number == partition->number &&
                !path_template_parts(sink->options.path_template, partition_topic(partition), partition_topic(other))) {
                return other;
            }
        }
    }
    return NULL;
}

static struct sink_partition *add(struct sink *sink, struct sink_slice topic, int32_t number, uint64_t hash)
{
    struct sink_partition *partition = calloc(1, sizeof *partition);
    char *name = malloc(topic.size + 1);

    if (partition == NULL || name == NULL || (sink->partition_count >= sink->table_size && !grow(sink))) {
        free(partition);
        free(name);
        return NULL;
    }
    if (topic.size > 0) {
        memcpy(name, topic.bytes, topic.size);
    }
    partition->topic = name;
    partition->topic_size = topic.size;
    partition->number = number;
    partition->hash = hash;
    partition->rival = find_rival(sink, partition);
    LIST_INSERT_HEAD(&sink->table[hash & (sink->table_size - 1)], partition, link);
    sink->partition_count++;
    return partition;
}

struct sink_partition *partition_find(struct sink *sink, struct sink_slice topic, int32_t number)
{
    uint64_t hash = hash_of(topic, number);
    struct sink_partition *partition =
        sink->table_size > 0 ? LIST_FIRST(&sink->table[hash & (sink->table_size - 1)]) : NULL;

    while (partition != NULL &&
           (partition->hash != hash || partition->number != number || partition->topic_size != topic.size ||
            (topic.size > 0 && memcmp(partition->topic, topic.bytes, topic.size) != 0))) {
        partition = LIST_NEXT(partition, link);
    }
    return partition != NULL ? partition : add(sink, topic, number, hash);
}

struct sink_partition *partition_take(struct sink *sink, struct sink_slice topic, int32_t number, struct error *error)
{
    pthread_mutex_lock(&sink->lock);
    struct sink_partition *partition = partition_find(sink, topic, number);
    while (partition != NULL && partition->busy && !sink->closing) {
        pthread_cond_wait(&sink->changed, &sink->lock);
    }
    if (partition == NULL) {
        error_set(error, QS_ERROR_NO_MEMORY, "out of memory for another topic and partition");
    } else if (sink->closing) {
        error_set(error, QS_ERROR_TRANSPORT, "the sink is being closed");
        partition = NULL;
    } else {
        partition->busy = true;
    }
    pthread_mutex_unlock(&sink->lock);
    return partition;
}

void partition_give(struct sink *sink, struct sink_partition *partition)
{
    pthread_mutex_lock(&sink->lock);
    partition->busy = false;
    pthread_cond_broadcast(&sink->changed);
    pthread_mutex_unlock(&sink->lock);
}

void partition_hold(struct sink *sink, struct sink_partition *partition)
{
    pthread_mutex_lock(&sink->lock);
    while (partition->busy) {
        pthread_cond_wait(&sink->changed, &sink->lock);
    }
    partition->busy = true;
    pthread_mutex_unlock(&sink->lock);
}

void partitions_free(struct sink *sink)
{
    for (size_t i = 0; i < sink->table_size; i++) {
        struct sink_partition *partition;
        while ((partition = LIST_FIRST(&sink->table[i])) != NULL) {
            LIST_REMOVE(partition, link);
            open_file_clear(&partition->file);
            seen_free(&partition->last);
            seen_free(&partition->current);
            seen_free(&partition->recovered);
            sink_formatter_free(&partition->formatter);
            free(partition->topic);
            free(partition);
        }
    }
    free(sink->table);
}

struct sink_slice partition_topic(const struct sink_partition *partition)
{
    return (struct sink_slice){partition->topic, partition->topic_size};
}
