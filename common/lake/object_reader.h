/*
 * Reading lake objects back, both formats (spec 2.2), a record at a time, for the commands that read (spec 4.4).
 *
 * What an object holds is not believed: JSON Lines are held against the envelope's shape to the byte, Parquet against
 * the lake's schema and the format's own rules, and every payload is proved to be JSON. What doesn't hold ends the
 * reading with QS_ERROR_BODY, not retriable, and a message that says where and why. What can't be seen in the object
 * alone (a record too few, an order that isn't one, a digit that is another) is for who has the manifest and its sha256.
 *
 * Memory doesn't grow with the object: JSON Lines need the longest line, Parquet the footer and one page a column.
 */
#ifndef COMMON_LAKE_OBJECT_READER_H
#define COMMON_LAKE_OBJECT_READER_H

#include <stdbool.h>

#include "common/lake/object_source.h"
#include "common/queen_api.h"
#include "common/settings.h"

/* The longest line, and the largest Parquet page and so the largest record, that is read. The broker's records are at
 * most some ten MB (spec 1.2 has seen 68); what is larger is damage, or meant to fill this machine's memory. */
#define OBJECT_RECORD_MAX 1073741824u

struct object_reader;

/* Slices are valid until the next call with the same reader. */
struct lake_record {
    struct name partition;
    int64_t offset;
    struct name transaction_id;
    struct broker_us ts;
    struct name payload; /* JSON text; `null` where there is none */
    bool payload_null;   /* the payload is JSON's null, in Parquet a null or that text */
    bool line_breaks;    /* a raw LF or CR stands between its tokens, as only Parquet can have it */
};

/* What is asked for. Zeroed: everything. */
struct object_filter {
    const struct name *partition; /* NULL: any */
    bool has_since;
    bool has_until;
    struct broker_us since; /* inclusive */
    struct broker_us until; /* exclusive */
};

struct object_counts {
    uint64_t records;            /* read, whether asked for or not; those of skipped row groups are not among them */
    uint64_t row_groups;         /* Parquet: read in part or whole */
    uint64_t row_groups_skipped; /* Parquet: never read, for their statistics rule them out */
};

/* The compression of a Parquet object is in its own pages; the argument counts for JSON Lines alone. The filter and the
 * partition it names must outlive the reader; NULL: everything. NULL and *error where the object can't be one: of JSON
 * Lines nothing is read yet. */
struct object_reader *object_reader_open(enum setting_format format, enum setting_compression compression,
                                         const struct object_source *source, const struct object_filter *filter,
                                         struct error *error);

/* 1: *record is the next that is asked for. 0: the object ended, and was whole. Negative: error->code; the reader gives
 * the same answer from then on. */
int object_reader_next(struct object_reader *reader, struct lake_record *record, struct error *error);

/* Where the record that came last stands: `line 12, byte 4711` of the uncompressed text, `record 12` of a Parquet file,
 * both from 1 but for the byte. For messages; valid until the next call. */
const char *object_reader_where(struct object_reader *reader);

void object_reader_counts(const struct object_reader *reader, struct object_counts *counts);

void object_reader_close(struct object_reader *reader);

#endif
