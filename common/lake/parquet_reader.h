/*
 * Parquet, record by record (spec 2.2), for object_reader.c.
 */
#ifndef COMMON_LAKE_PARQUET_READER_H
#define COMMON_LAKE_PARQUET_READER_H

#include "common/lake/object_reader.h"

struct parquet_reader;

struct parquet_reader *parquet_reader_open(const struct object_source *source, const struct object_filter *filter,
                                           struct error *error);
/* 1, 0 or an error, as object_reader_next(). */
int parquet_reader_next(struct parquet_reader *reader, struct lake_record *record, struct error *error);
/* Number of the record that came last, from 1, skipped ones counted. */
uint64_t parquet_reader_where(const struct parquet_reader *reader);
void parquet_reader_counts(const struct parquet_reader *reader, struct object_counts *counts);
void parquet_reader_close(struct parquet_reader *reader);

#endif
