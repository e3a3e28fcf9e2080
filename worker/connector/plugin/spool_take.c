/*
 * Batches and the spool (spool_take.h). A batch is taken whole or not at all: its records are formatted in memory first,
 * then written, one frame for each file that they go into, and only when every frame is durable they count as taken. A
 * disk that is full in between leaves files and memory as they were, and the batch comes again.
 */
#include "worker/connector/plugin/spool_take.h"

#include <stdlib.h>

#include "common/log.h"
#include "worker/connector/plugin/keeper.h"

#define ANSWER_GOOD  0
#define ANSWER_AGAIN 1

/* A file that records of this batch go into. */
struct part {
    struct open_file file;
    struct spool_file *spooled; /* NULL until it is written */
    uint64_t added;             /* records of this batch */
};

/* The partition's file is the last part; those that got full on the way are kept here. */
struct parts {
    struct part *full;
    size_t count;
    size_t capacity;
    uint64_t added; /* to the partition's file */
    struct seen repeats;
    /* What the first part was before. */
    struct open_file before;
    struct spool_file spool_before;
    struct spool_file *spooled_before;
};

static bool push_full(struct parts *parts, struct sink_partition *partition)
{
    if (parts->count == parts->capacity) {
        size_t capacity = parts->capacity > 0 ? 2 * parts->capacity : 4;
        struct part *full = realloc(parts->full, capacity * sizeof *full);
        if (full == NULL) {
            return false;
        }
        parts->full = full;
        parts->capacity = capacity;
    }
    parts->full[parts->count++] = (struct part){partition->file, partition->spooled, parts->added};
    partition->file = (struct open_file){0};
    partition->spooled = NULL;
    parts->added = 0;
    return true;
}

/* ---- in memory ---- */

static int rotate(struct parts *parts, struct sink_partition *partition, struct error *error)
{
    return push_full(parts, partition) ? 0 : error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a batch's files");
}

static int add_record(struct taking *taking, struct parts *parts, const struct sink_record *record, uint64_t hash,
                      struct error *error)
{
    struct sink_partition *partition = taking->partition;
    struct open_file *file = &partition->file;
    enum open_file_added added = OPEN_FILE_NO_ROOM;
    unsigned oddities = 0;

    if (open_file_is_behind(file, record->offset) && rotate(parts, partition, error) != 0) {
        return error->code;
    }
    bool first = file->count == 0;
    int code = open_file_add(file, &taking->place, &partition->formatter, record, hash, &added, &oddities, error);
    if (code == 0 && added == OPEN_FILE_NO_ROOM) {
        code = rotate(parts, partition, error);
        return code == 0 ? add_record(taking, parts, record, hash, error) : code;
    }
    if (code != 0) {
        return code;
    }
    if (first) {
        file->opened = clock_mono();
    }
    parts->added++;
    taking_note_oddities(taking, record, oddities);
    return open_file_is_full(file, &taking->sink->options.limits) ? rotate(parts, partition, error) : 0;
}

/* Of this batch too: what it holds twice in one file it holds once. */
static bool is_repeat(const struct parts *parts, const struct sink_partition *partition, uint64_t offset, uint64_t hash)
{
    return taking_is_repeat(partition, offset, hash) ||
           (parts->count > 0 && seen_has(&parts->full[0].file.seen, offset, hash));
}

static int format(struct taking *taking, struct parts *parts, struct error *error)
{
    struct sink_partition *partition = taking->partition;
    struct sink_record record;
    int code = 0;

    for (uint64_t i = 0; i < taking->count && code == 0 && postcard_message(&taking->cursor, &record); i++) {
        uint64_t hash = sink_record_hash(&record);
        if (!seen_reserve(&partition->current, 1)) {
            return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a record's offset");
        }
        if (!is_repeat(parts, partition, record.offset, hash)) {
            code = add_record(taking, parts, &record, hash, error);
        } else if (seen_reserve(&parts->repeats, 1)) {
            seen_add(&parts->repeats, record.offset, hash);
        } else {
            code = error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a record's offset");
        }
        seen_add(&partition->current, record.offset, hash);
    }
    return code;
}

/* ---- on disk ---- */

static int write_part(struct taking *taking, const struct open_file *file, struct spool_file **spooled, uint64_t added,
                      const struct seen *repeats, uint64_t batch, struct error *error)
{
    const struct sink *sink = taking->sink;
    bool torn = false;

    if (added == 0) {
        return 0;
    }
    if (*spooled == NULL) {
        *spooled = spool_file_create(sink->spool, taking->place.topic, taking->place.partition, file->directory,
                                     &sink->options.shape, error);
        if (*spooled == NULL) {
            return error->code;
        }
    }
    int code = spool_file_add(*spooled, file, added, repeats, batch, &torn, error);
    taking->partition->torn = taking->partition->torn || torn;
    return code;
}

static bool has_news(const struct parts *parts)
{
    bool news = parts->added > 0;

    for (size_t i = 0; i < parts->count; i++) {
        news = news || parts->full[i].added > 0;
    }
    return news;
}

static int write_parts(struct taking *taking, struct parts *parts, struct error *error)
{
    const struct sink_partition *partition = taking->partition;

    if (!has_news(parts)) {
        return 0;
    }
    int code = spool_note_reserve(taking->sink->spool, taking->place.topic,
                                  partition->current.count + partition->recovered.count, error);
    uint64_t batch = spool_next_batch(taking->sink->spool);
    for (size_t i = 0; i < parts->count && code == 0; i++) {
        struct part *part = &parts->full[i];
        code = write_part(taking, &part->file, &part->spooled, part->added, &parts->repeats, batch, error);
    }
    if (code == 0) {
        code = write_part(taking, &taking->partition->file, &taking->partition->spooled, parts->added, &parts->repeats,
                          batch, error);
    }
    return code;
}

/* ---- either way ---- */

static void keep(struct taking *taking, struct parts *parts)
{
    struct sink *sink = taking->sink;
    struct sink_partition *partition = taking->partition;
    struct open_file *file = &partition->file;

    pthread_mutex_lock(&sink->lock);
    for (size_t i = 0; i < parts->count; i++) {
        keeper_queue(sink->keeper, parts->full[i].spooled);
    }
    pthread_mutex_unlock(&sink->lock);
    for (size_t i = 0; i < parts->count; i++) {
        open_file_clear(&parts->full[i].file);
    }
    file->written += file->body.size;
    sink_body_clear(&file->body);
}

static void undo_part(struct parts *parts, struct sink_partition *partition, struct spool_file *spooled)
{
    struct error error;

    if (spooled == NULL) {
        return;
    }
    if (spooled != parts->spooled_before) {
        spool_file_remove(spooled);
        return;
    }
    if (spooled->size != parts->spool_before.size && spool_file_cut(spooled, parts->spool_before.size, &error) != 0) {
        log_line(LOG_WARN, NULL, "%s", error.message);
        partition->torn = true;
    }
    *spooled = parts->spool_before;
}

static void undo(struct parts *parts, struct sink_partition *partition)
{
    struct part last = {partition->file, partition->spooled, parts->added};
    struct seen seen = parts->count > 0 ? parts->full[0].file.seen : last.file.seen; /* it may have moved, growing */

    for (size_t i = 0; i <= parts->count; i++) {
        struct part *part = i < parts->count ? &parts->full[i] : &last;
        undo_part(parts, partition, part->spooled);
        if (i == 0) {
            part->file.seen = (struct seen){0};
        }
        open_file_clear(&part->file);
    }
    seen.count = parts->before.seen.count;
    partition->file = parts->before;
    partition->file.seen = seen;
    partition->file.body = (struct sink_body){0};
    partition->spooled = parts->spooled_before;
    seen_clear(&partition->current);
}

/* What could not be taken away when a disk was full or ill: nothing may be written behind it. */
static int mend(struct sink_partition *partition, struct error *error)
{
    if (!partition->torn || partition->spooled == NULL) {
        partition->torn = false;
        return 0;
    }
    int code = spool_file_cut(partition->spooled, partition->spooled->size, error);
    partition->torn = code != 0;
    return code;
}

int32_t take_spooled(struct taking *taking, struct error *error)
{
    struct sink_partition *partition = taking->partition;
    struct parts parts = {.before = partition->file, .spooled_before = partition->spooled};

    if (mend(partition, error) != 0) {
        return ANSWER_AGAIN;
    }
    if (partition->spooled != NULL) {
        parts.spool_before = *partition->spooled;
    }
    int code = format(taking, &parts, error);
    if (code == 0) {
        code = write_parts(taking, &parts, error);
    }
    if (code == 0) {
        keep(taking, &parts);
        taking_succeeded(partition);
    } else {
        undo(&parts, partition);
    }
    free(parts.full);
    seen_free(&parts.repeats);
    return code == 0 ? ANSWER_GOOD : ANSWER_AGAIN;
}

/* ---- open and close ---- */

void sink_spool_rotate(struct sink *sink, struct sink_partition *partition)
{
    if (partition->spooled != NULL) {
        keeper_queue(sink->keeper, partition->spooled);
        partition->spooled = NULL;
    }
    open_file_clear(&partition->file);
}

void sink_spool_rest(struct sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    for (size_t i = 0; i < sink->table_size; i++) {
        for (struct sink_partition *partition = LIST_FIRST(&sink->table[i]); partition != NULL;
             partition = LIST_NEXT(partition, link)) {
            sink_spool_rotate(sink, partition);
        }
    }
    pthread_mutex_unlock(&sink->lock);
}

struct recovery {
    struct sink *sink;
    uint64_t files;
    uint64_t records;
    bool no_memory;
    struct spool_files list; /* the keeper's once all is known */
};

static bool add_all(struct seen *to, const struct seen *from)
{
    if (!seen_reserve(to, from->count)) {
        return false;
    }
    for (size_t i = 0; i < from->count; i++) {
        seen_add(to, from->records[i].offset, from->records[i].hash);
    }
    seen_sort(to);
    return true;
}

static struct sink_partition *find_locked(struct sink *sink, struct sink_slice topic, int32_t number)
{
    pthread_mutex_lock(&sink->lock);
    struct sink_partition *partition = partition_find(sink, topic, number);
    pthread_mutex_unlock(&sink->lock);
    return partition;
}

/* The records of the newest file, and those of the files before that its first batch began in. */
static void found_file(void *argument, struct spool_file *spooled, const struct seen *records,
                       const struct seen *repeats, uint64_t first_batch)
{
    struct recovery *recovery = argument;
    struct sink *sink = recovery->sink;
    struct sink_partition *partition =
        find_locked(sink, (struct sink_slice){spooled->topic, spooled->topic_size}, spooled->partition);

    if (partition == NULL) {
        recovery->no_memory = true;
        spool_file_free(spooled);
        return;
    }
    if (partition->recovered_batch != first_batch) {
        seen_clear(&partition->recovered);
    }
    partition->recovered_batch = spooled->last_batch;
    partition->note_is_stale = true;
    recovery->no_memory =
        recovery->no_memory || !add_all(&partition->recovered, records) || !add_all(&partition->recovered, repeats);
    recovery->files++;
    recovery->records += spooled->count;
    TAILQ_INSERT_TAIL(&recovery->list, spooled, link);
}

static void found_note(void *argument, uint32_t number, struct sink_slice topic, int32_t partition_number,
                       const struct seen *records)
{
    struct recovery *recovery = argument;
    struct sink_partition *partition = find_locked(recovery->sink, topic, partition_number);

    if (partition == NULL || !add_all(&partition->last, records)) {
        recovery->no_memory = true;
        return;
    }
    partition->note = number;
}

int sink_recover(struct sink *sink, struct error *error)
{
    struct recovery recovery = {.sink = sink};
    const struct spool_found found = {.file = found_file, .note = found_note, .argument = &recovery};
    struct spool_file *spooled;

    TAILQ_INIT(&recovery.list);
    int code = spool_recover(sink->spool, &found, error);
    if (code == 0 && recovery.no_memory) {
        code = error_set(error, QS_ERROR_NO_MEMORY, "out of memory for what is in the spool");
    }
    pthread_mutex_lock(&sink->lock);
    while ((spooled = TAILQ_FIRST(&recovery.list)) != NULL) {
        TAILQ_REMOVE(&recovery.list, spooled, link);
        if (code == 0) {
            keeper_queue(sink->keeper, spooled);
        } else {
            spool_file_free(spooled);
        }
    }
    pthread_mutex_unlock(&sink->lock);
    if (code == 0 && recovery.files > 0) {
        log_line(LOG_INFO, NULL, "the spool holds %llu files with %llu records from before: they are put up now",
                 (unsigned long long)recovery.files, (unsigned long long)recovery.records);
    }
    return code;
}
