/*
 * JSON Lines, line by line (spec 2.2), for object_reader.c.
 */
#ifndef COMMON_LAKE_JSONL_READ_H
#define COMMON_LAKE_JSONL_READ_H

#include "common/lake/object_reader.h"

struct jsonl_reader;

struct jsonl_reader *jsonl_reader_open(enum setting_compression compression, const struct object_source *source,
                                       struct error *error);
/* 1, 0 or an error, as object_reader_next(); knows no filter. */
int jsonl_reader_next(struct jsonl_reader *reader, struct lake_record *record, struct error *error);
/* Of the line that came last: its number, from 1, and its first byte in the text. */
void jsonl_reader_where(const struct jsonl_reader *reader, uint64_t *line, uint64_t *byte);
void jsonl_reader_close(struct jsonl_reader *reader);

#endif
