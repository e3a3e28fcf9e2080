/* A table for a terminal: text_table.h. */
#include "supervisor/commands/text_table.h"

#include <stdlib.h>

#include "common/memory.h"
#include "common/utf8.h"
#include "common/visible.h"
#include "supervisor/commands/output.h"
#include "supervisor/show.h"

#define GAP         "  "
#define NOTE_INDENT "      "
#define ALARM       "! "
#define NO_ALARM    "  "
#define RED         "\033[31m"
#define FAINT       "\033[2m"
#define PLAIN       "\033[0m"

struct text_table_row *text_table_add(struct text_table *table)
{
    table->rows = memory_grow(table->rows, &table->row_capacity, table->row_count + 1, sizeof *table->rows);
    table->rows[table->row_count] = (struct text_table_row){.note = NULL};
    return &table->rows[table->row_count++];
}

/* text is of visible_text(), so every character in it is whole. */
static char *cut(const char *text)
{
    const char *end = text;

    if (show_width(text) <= TEXT_TABLE_CELL_WIDTH) {
        return memory_copy_text(text);
    }
    for (size_t i = 0; i < TEXT_TABLE_CELL_WIDTH - 1; i++) {
        end += utf8_next(end);
    }
    return memory_format("%.*s…", (int)(end - text), text);
}

void text_table_cell(struct text_table_row *row, size_t column, const char *text)
{
    char *shown = visible_text(text != NULL ? text : "-");

    free(row->cells[column]);
    row->cells[column] = cut(shown);
    free(shown);
}

void text_table_note(struct text_table_row *row, const char *text)
{
    free(row->note);
    row->note = visible_text(text);
}

static const char *cell_of(const struct text_table_row *row, size_t column)
{
    return row->cells[column] != NULL ? row->cells[column] : "";
}

static size_t column_width(const struct text_table *table, size_t column)
{
    size_t width = show_width(table->titles[column]);

    for (size_t i = 0; i < table->row_count; i++) {
        size_t own = show_width(cell_of(&table->rows[i], column));
        width = own > width ? own : width;
    }
    return width;
}

/* Without blanks behind the last column. */
static void print_cell(const struct text_table *table, size_t column, const char *text, size_t width)
{
    int blanks = (int)(width - show_width(text));
    bool last = column + 1 == table->count;

    if (table->right[column]) {
        output_format("%*s%s", blanks, "", text);
    } else {
        output_format("%s%*s", text, last ? 0 : blanks, "");
    }
    output_text(last ? "" : GAP);
}

static void print_row(const struct text_table *table, const struct text_table_row *row, const size_t *widths,
                      bool colour)
{
    const char *begin = !colour ? "" : row->alarmed ? RED : "";
    const char *end = *begin != '\0' ? PLAIN : "";

    output_text(begin);
    output_text(row->alarmed ? ALARM : NO_ALARM);
    for (size_t column = 0; column < table->count; column++) {
        print_cell(table, column, cell_of(row, column), widths[column]);
    }
    output_text(end);
    output_text("\n");
    if (row->note != NULL) {
        output_format("%s" NOTE_INDENT "%s%s\n", begin, row->note, end);
    }
}

void text_table_print(const struct text_table *table, bool colour)
{
    size_t widths[TEXT_TABLE_COLUMNS_MAX];

    for (size_t column = 0; column < table->count; column++) {
        widths[column] = column_width(table, column);
    }
    output_text(colour ? FAINT NO_ALARM : NO_ALARM);
    for (size_t column = 0; column < table->count; column++) {
        print_cell(table, column, table->titles[column], widths[column]);
    }
    output_text(colour ? PLAIN "\n" : "\n");
    for (size_t i = 0; i < table->row_count; i++) {
        print_row(table, &table->rows[i], widths, colour);
    }
}

void text_table_free(struct text_table *table)
{
    for (size_t i = 0; i < table->row_count; i++) {
        for (size_t column = 0; column < TEXT_TABLE_COLUMNS_MAX; column++) {
            free(table->rows[i].cells[column]);
        }
        free(table->rows[i].note);
    }
    free(table->rows);
    *table = (struct text_table){.rows = NULL};
}
