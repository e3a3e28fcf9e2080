/*
 * `queen-s3 ddl ENGINE QUEUE`: a ready query or table (spec 4.4). Nothing is asked of the bucket, and no secret is in
 * the text: each engine takes keys from its own environment, which a comment names.
 */
#include "supervisor/commands/ddl.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/byte_buffer.h"
#include "supervisor/commands/arguments.h"
#include "supervisor/commands/commands.h"
#include "supervisor/commands/output.h"

const struct ddl_engine ddl_engines[] = {
    {"duckdb", {ddl_duckdb}},
    {"spark", {ddl_spark}},
    {"trino", {ddl_trino}},
    {"athena", {ddl_athena}},
    {"clickhouse", {ddl_clickhouse}},
    {"snowflake", {ddl_snowflake}},
    {"polars", {ddl_polars}},
    {"pyarrow", {ddl_pyarrow, ddl_arrow, ddl_pyarrow_frame}},
    {"pandas", {ddl_pandas, ddl_arrow, ddl_pandas_frame}},
    {NULL, {NULL}},
};

#define PARTS (sizeof ddl_engines[0].text / sizeof ddl_engines[0].text[0])

static char *fill_parts(const struct ddl_engine *engine, const struct settings *settings, const char *queue)
{
    struct byte_buffer out = {0};

    for (size_t i = 0; i < PARTS && engine->text[i] != NULL; i++) {
        char *part = ddl_fill(engine->text[i], settings, queue);
        byte_buffer_add_text(&out, part);
        free(part);
    }
    return byte_buffer_take(&out);
}

char *ddl_text(const struct settings *settings, const char *engine, const char *queue)
{
    for (const struct ddl_engine *at = ddl_engines; at->name != NULL; at++) {
        if (strcasecmp(at->name, engine) == 0) {
            return fill_parts(at, settings, queue);
        }
    }
    return NULL;
}

static int refuse_engine(const char *engine)
{
    struct byte_buffer known = {0};

    for (const struct ddl_engine *at = ddl_engines; at->name != NULL; at++) {
        byte_buffer_add_format(&known, "%s%s", at == ddl_engines ? "" : at[1].name != NULL ? ", " : " or ", at->name);
    }
    int code = command_fail(COMMAND_CONFIGURATION, "unknown engine %s: expected %s", engine, known.bytes);
    byte_buffer_free(&known);
    return code;
}

static int print(const struct settings *settings, const char *engine, const char *queue)
{
    char *text = ddl_text(settings, engine, queue);

    if (text == NULL) {
        return refuse_engine(engine);
    }
    output_text(text);
    free(text);
    return EXIT_SUCCESS;
}

static int run_ddl(int argc, char **argv)
{
    struct arguments arguments;
    struct settings settings;
    struct error error;

    output_begin();
    if (arguments_parse(&command_ddl, argc, argv, &arguments, &error) != 0) {
        return command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    const char *engine = arguments.words[0];
    const char *queue = arguments.words[1];
    free(arguments.words);
    if (arguments_queue(queue, &error) != 0 ||
        settings_load_bucket(arguments.values[COMMAND_FILE], false, &settings, &error) != 0) {
        return command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    int code = print(&settings, engine, queue);
    settings_free(&settings);
    return output_end(code);
}

static const char *engine_name(size_t number)
{
    return ddl_engines[number].name;
}

static const struct command_exit exits[] = {
    {EXIT_SUCCESS, "the text has been printed"},
    {COMMAND_CONFIGURATION, "there is no such engine, or arguments or settings are wrong"},
    {0, NULL},
};

static const struct command_example examples[] = {
    {"queen-s3 ddl duckdb orders | duckdb lake.db", "makes a view named orders in a DuckDB file"},
    {"queen-s3 ddl polars orders > orders.py", "writes a script that defines df, the records of the queue"},
    {NULL, NULL},
};

const struct command command_ddl = {
    .name = "ddl",
    .words = "ENGINE QUEUE",
    .summary = "print a ready query or table of a queue for a query engine",
    .help = "For an SQL engine the text makes a view (or table) named after the queue, with the columns partition, "
            "offset, transaction_id, ts (with its time zone), payload (JSON text), and dt and hour, by which an engine "
            "skips what it needn't read. For Python it is a script that defines df with the same columns.\n"
            "It fits this configuration: format, compression, align, prefix, endpoint, region, bucket and addressing "
            "are read from the settings. No keys are needed and none are printed: the text says in a comment where "
            "the engine takes them from.",
    .options = command_only_file,
    .exits = exits,
    .examples = examples,
    .choice = engine_name,
    .run = run_ddl,
};
