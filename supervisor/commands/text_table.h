/*
 * A table for a terminal: columns as wide as what is in them, numbers to the right, a line below a row where there is more
 * to say about it.
 */
#ifndef SUPERVISOR_COMMANDS_TEXT_TABLE_H
#define SUPERVISOR_COMMANDS_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#define TEXT_TABLE_COLUMNS_MAX 8
#define TEXT_TABLE_CELL_WIDTH  32 /* characters; what is longer is cut with an ellipsis */

struct text_table_row {
    char *cells[TEXT_TABLE_COLUMNS_MAX];
    char *note;   /* NULL: none */
    bool alarmed; /* it and its note stand out: by a mark, and by colour where there is any */
};

/* titles, right and count are the caller's to fill; the rest begins zeroed. */
struct text_table {
    const char *titles[TEXT_TABLE_COLUMNS_MAX];
    bool right[TEXT_TABLE_COLUMNS_MAX]; /* numbers */
    size_t count;
    struct text_table_row *rows;
    size_t row_count;
    size_t row_capacity;
};

/* A new row: valid until the next one. */
struct text_table_row *text_table_add(struct text_table *table);
/* The text (which may be a stranger's) or "-" for NULL, cut where it is too wide. */
void text_table_cell(struct text_table_row *row, size_t column, const char *text);
/* Likewise, whole. */
void text_table_note(struct text_table_row *row, const char *text);
/* To standard output: output.h. */
void text_table_print(const struct text_table *table, bool colour);
void text_table_free(struct text_table *table);

#endif
