/* See resolver.h. */
#include "worker/connector/resolver.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/memory.h"
#include "worker/connector/cut.h"

#define ANSWER_MS 5000

struct resolver {
    rd_kafka_t *consumer;
    int event;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t asked;
    rd_kafka_topic_partition_list_t *question; /* NULL: none waits */
    unsigned long number;                      /* of the last question */
    struct resolution answer;
    bool answered; /* the last question is */
    bool ends;
};

static int failed(struct error *error, const char *what, rd_kafka_resp_err_t code)
{
    return error_set(error, QS_ERROR_TRANSPORT, "%s: %s", what, rd_kafka_err2str(code));
}

static int ask_committed(struct resolver *resolver, rd_kafka_topic_partition_list_t *list, struct error *error)
{
    rd_kafka_resp_err_t code = rd_kafka_committed(resolver->consumer, list, ANSWER_MS);

    for (int i = 0; i < list->cnt && code == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
        code = list->elems[i].err;
    }
    return code == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : failed(error, "the group's offsets", code);
}

static int ask_bounds(struct resolver *resolver, struct resolved_partition *partition, struct error *error)
{
    rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
        resolver->consumer, partition->topic, partition->partition, &partition->low, &partition->high, ANSWER_MS);

    return code == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : failed(error, partition->topic, code);
}

static void resolve(struct resolver *resolver, struct resolution *resolution)
{
    rd_kafka_topic_partition_list_t *list = resolution->list;

    error_clear(&resolution->error);
    resolution->partitions = memory_new((size_t)list->cnt + 1, sizeof *resolution->partitions);
    int status = ask_committed(resolver, list, &resolution->error);
    for (int i = 0; i < list->cnt && status == 0; i++) {
        const rd_kafka_topic_partition_t *from = &list->elems[i];
        struct resolved_partition *to = &resolution->partitions[resolution->count++];

        *to = (struct resolved_partition){.topic = from->topic,
                                          .partition = from->partition,
                                          .committed = from->offset < 0 ? CUT_NO_OFFSET : from->offset,
                                          .note = from->metadata,
                                          .note_size = from->metadata == NULL ? 0 : from->metadata_size};
        status = ask_bounds(resolver, to, &resolution->error);
    }
}

static void publish(struct resolver *resolver, struct resolution *resolution, unsigned long number)
{
    static const uint64_t one = 1;

    if (number != resolver->number) {
        resolution_free(resolution);
        return;
    }
    resolution_free(&resolver->answer);
    resolver->answer = *resolution;
    resolver->answered = true;
    (void)!write(resolver->event, &one, sizeof one);
}

static void *run(void *argument)
{
    struct resolver *resolver = argument;

    (void)pthread_mutex_lock(&resolver->mutex);
    while (!resolver->ends) {
        if (resolver->question == NULL) {
            (void)pthread_cond_wait(&resolver->asked, &resolver->mutex);
            continue;
        }
        struct resolution resolution = {.list = resolver->question};
        unsigned long number = resolver->number;
        resolver->question = NULL;
        (void)pthread_mutex_unlock(&resolver->mutex);
        resolve(resolver, &resolution);
        (void)pthread_mutex_lock(&resolver->mutex);
        publish(resolver, &resolution, number);
    }
    (void)pthread_mutex_unlock(&resolver->mutex);
    return NULL;
}

struct resolver *resolver_create(rd_kafka_t *consumer, int event, struct error *error)
{
    struct resolver *resolver = memory_new(1, sizeof *resolver);
    sigset_t all;
    sigset_t before;

    resolver->consumer = consumer;
    resolver->event = event;
    (void)pthread_mutex_init(&resolver->mutex, NULL);
    (void)pthread_cond_init(&resolver->asked, NULL);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = pthread_create(&resolver->thread, NULL, run, resolver);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status != 0) {
        (void)error_set(error, QS_ERROR_SYSTEM, "pthread_create: %s", strerror(status));
        free(resolver);
        return NULL;
    }
    return resolver;
}

void resolver_ask(struct resolver *resolver, const rd_kafka_topic_partition_list_t *partitions)
{
    rd_kafka_topic_partition_list_t *copy = rd_kafka_topic_partition_list_copy(partitions);

    (void)pthread_mutex_lock(&resolver->mutex);
    if (resolver->question != NULL) {
        rd_kafka_topic_partition_list_destroy(resolver->question);
    }
    resolver->question = copy;
    resolver->answered = false;
    resolver->number++;
    (void)pthread_cond_signal(&resolver->asked);
    (void)pthread_mutex_unlock(&resolver->mutex);
}

bool resolver_take(struct resolver *resolver, struct resolution *resolution)
{
    (void)pthread_mutex_lock(&resolver->mutex);
    bool answered = resolver->answered;
    if (answered) {
        *resolution = resolver->answer;
        resolver->answer = (struct resolution){0};
        resolver->answered = false;
    }
    (void)pthread_mutex_unlock(&resolver->mutex);
    return answered;
}

void resolution_free(struct resolution *resolution)
{
    if (resolution->list != NULL) {
        rd_kafka_topic_partition_list_destroy(resolution->list);
    }
    free(resolution->partitions);
    *resolution = (struct resolution){0};
}

void resolver_destroy(struct resolver *resolver)
{
    if (resolver == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&resolver->mutex);
    resolver->ends = true;
    (void)pthread_cond_signal(&resolver->asked);
    (void)pthread_mutex_unlock(&resolver->mutex);
    (void)pthread_join(resolver->thread, NULL);
    if (resolver->question != NULL) {
        rd_kafka_topic_partition_list_destroy(resolver->question);
    }
    resolution_free(&resolver->answer);
    (void)pthread_mutex_destroy(&resolver->mutex);
    (void)pthread_cond_destroy(&resolver->asked);
    free(resolver);
}
