/*
 * A lake object read by the object reader and spelled as JSON Lines (spec 2.2): what two objects hold is then compared
 * as text.
 */
#ifndef TESTS_UNIT_LAKE_LINES_H
#define TESTS_UNIT_LAKE_LINES_H

#include "common/byte_buffer.h"
#include "common/lake/object_reader.h"

/* The lines are added to *lines, each raw LF or CR of a payload as a blank; *counts may be NULL. 0 or an error. */
int lake_lines(enum setting_format format, enum setting_compression compression, const void *bytes, size_t size,
               const struct object_filter *filter, struct byte_buffer *lines, struct object_counts *counts,
               struct error *error);

/* A file of tests/unit/data/parquet, malloc; the test fails where it isn't there. */
char *lake_fixture(const char *name, size_t *size);

#endif
