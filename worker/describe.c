/* What an object holds, read whole: describe.h. */
#include "worker/describe.h"

#include <stdlib.h>
#include <string.h>

#include "common/lake/object_reader.h"
#include "common/memory.h"
#include "common/name.h"

struct describing {
    struct object_description *description;
    size_t capacity;
    const struct window_bounds *bounds;
};

/* False where the record can't follow those before it in an object of this window. */
static bool take_record(struct describing *describing, const struct lake_record *record)
{
    struct object_description *description = describing->description;
    struct described_span *last = description->span_count > 0 ? &description->spans[description->span_count - 1] : NULL;
    int order = last != NULL ? name_compare(record->partition, last->partition) : 1;
    if (order < 0 || (order == 0 && record->offset <= last->last) || record->ts.v < describing->bounds->start.v ||
        record->ts.v >= describing->bounds->end.v)
        return false;
    description->partitions += order != 0;
    if (order == 0 && record->offset == last->last + 1) {
        last->last = record->offset;
    } else {
        description->spans = memory_grow(description->spans, &describing->capacity, description->span_count + 1,
                                         sizeof *description->spans);
        description->spans[description->span_count++] = (struct described_span){
            {memory_copy(record->partition.bytes, record->partition.size), record->partition.size},
            record->offset,
            record->offset};
    }
    if (description->records == 0 || record->ts.v < description->min_ts.v)
        description->min_ts = record->ts;
    if (description->records == 0 || record->ts.v > description->max_ts.v)
        description->max_ts = record->ts;
    description->records++;
    return true;
}

int describe_object(const struct object_source *source, const struct window_shape *shape,
                    const struct window_bounds *bounds, struct object_description *description, struct error *error)
{
    struct describing describing = {description, 0, bounds};
    struct lake_record record;
    memset(description, 0, sizeof *description);
    struct object_reader *reader = object_reader_open(shape->format, shape->compression, source, NULL, error);
    if (reader == NULL)
        return error->code;
    int status;
    while ((status = object_reader_next(reader, &record, error)) == 1)
        if (!take_record(&describing, &record)) {
            status = error_set(error, QS_ERROR_BODY, "%s doesn't belong there", object_reader_where(reader));
            break;
        }
    object_reader_close(reader);
    if (status == 0 && description->records == 0)
        status = error_set(error, QS_ERROR_BODY, "no record in it");
    if (status != 0)
        describe_free(description);
    return status;
}

void describe_free(struct object_description *description)
{
    for (size_t i = 0; i < description->span_count; i++)
        free((void *)(uintptr_t)description->spans[i].partition.bytes);
    free(description->spans);
    memset(description, 0, sizeof *description);
}
