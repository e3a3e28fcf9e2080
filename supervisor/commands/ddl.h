/*
 * The text of `ddl`: for each engine a template (ddl_sql.c, ddl_warehouse.c, ddl_python.c), filled in for one
 * configuration and queue (ddl_template.c). Pure: text in, text out.
 *
 * A template is lines. One that begins with `%condition ` (`%s3 `, `%s3+jsonl `) is kept, without that, where all its
 * conditions hold. `{{name quoting}}` in a line becomes the value of that name, quoted.
 *
 *   conditions  s3 file, jsonl parquet, zstd gzip none snappy, hour (the keys have hour=) day, path-style virtual-host,
 *               amazon, custom (an endpoint that isn't Amazon's), http, wildcard (the path has bytes that globs take
 *               for more)
 *   names       queue; what (a description in words); key (the queue's folder in the bucket, prefix/queue=…); folder
 *               (s3://bucket/key, or the folder of file:); path (the same without s3://); objects (all its objects, a
 *               pattern below the folder); polars-objects (the same as Polars wants it); file-url (file:///…); s3-url
 *               (s3://bucket/key whatever the endpoint); s3a-url; url-objects (http(s)://…, as a URL is spelled); url
 *               (the folder of these); extension; compression; endpoint; host (the endpoint without its scheme);
 *               bucket-host (the endpoint with the bucket in its host); bucket; region
 *   quoting     sql ('…', a quote doubled), escape (a quote and a backslash escaped), id ("…"), tick (`…`), id-escape,
 *               python ("…" escaped), sql-part, escape-part (inside of '…'), name (a–z, 0–9 and _), raw
 */
#ifndef SUPERVISOR_COMMANDS_DDL_H
#define SUPERVISOR_COMMANDS_DDL_H

#include "common/settings.h"

struct ddl_engine {
    const char *name;
    const char *text[3]; /* templates, one after the other; NULL: no more */
};

/* The engines in the order of spec 4.4, ended by a NULL name. */
extern const struct ddl_engine ddl_engines[];
extern const char ddl_duckdb[], ddl_clickhouse[], ddl_spark[];
extern const char ddl_trino[], ddl_athena[], ddl_snowflake[];
extern const char ddl_polars[], ddl_arrow[];
extern const char ddl_pyarrow[], ddl_pyarrow_frame[], ddl_pandas[], ddl_pandas_frame[];

/* malloc; NULL where there is no such engine. */
char *ddl_text(const struct settings *settings, const char *engine, const char *queue);
/* The template filled in; malloc. */
char *ddl_fill(const char *text, const struct settings *settings, const char *queue);

#endif
