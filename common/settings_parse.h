/*
 * The parts of settings.c: how one value is understood. Each take_… function gets a value without blanks around it
 * (a secret comes as it is), puts what it means into the settings, and refuses what it doesn't accept with the line of
 * spec 3.1.
 */
#ifndef COMMON_SETTINGS_PARSE_H
#define COMMON_SETTINGS_PARSE_H

#include "common/setting_table.h"
#include "common/settings.h"

/* More workers than this no machine is for (spec 3.1). */
#define SETTING_WORKERS_MAX 1024

struct setting_choice {
    const char *name;
    int value;
};

struct setting_row;
typedef int setting_take(const struct setting_row *row, const char *text, struct settings *settings,
                         struct error *error);

/* One variable of spec 3.1, and all that is said about it. */
struct setting_row {
    const char *name;
    setting_take *take;   /* NULL: not looked at */
    size_t offset;        /* of the field in struct settings, where take doesn't know it */
    const char *fallback; /* the default, read like any other value; NULL: none */
    const char *expected; /* behind "expected " in the line that refuses a value */
    int64_t least;        /* numbers */
    int64_t most;
    int64_t unit;                         /* what the number is multiplied with */
    const struct setting_choice *choices; /* ended by a NULL name */
    unsigned flags;                       /* setting_table.h, and so on to the end */
    const char *initial;                  /* where it is another text than fallback */
    const char *accepted;                 /* where it is another text than expected */
    const char *file_of;
    const char *description;
};

/* In the order in which they are read: QUEEN_S3_FORMAT before the two that it chooses between, a secret before its file,
 * RUST_LOG before QUEEN_S3_LOG_LEVEL. */
extern const struct setting_row setting_rows[];
extern const size_t setting_row_count;

/* Where values come from. blame (may be NULL) gets to add to the line that refuses one where it stands. */
typedef void settings_blame(void *argument, const char *name, struct error *error);
struct settings_source {
    settings_lookup *lookup;
    settings_blame *blame;
    void *argument;
};
/* What has to be set: all that the sink needs, what reads the bucket, or what only names it; nothing; or nothing,
 * and no more is read than what names the control socket. */
enum setting_need {
    SETTING_NEED_ALL,
    SETTING_NEED_BUCKET,
    SETTING_NEED_PLACE,
    SETTING_NEED_NOTHING,
    SETTING_NEED_CONTROL
};
/* As settings_load(), settings_load_bucket() and settings_load_control(). */
int settings_read_from(const struct settings_source *source, enum setting_need need, struct settings *settings,
                       struct error *error);

/* QS_ERROR_INPUT with `NAME=value: expected …`. The value is cut where it is long and shown without control bytes. */
int setting_refuse(const struct setting_row *row, const char *text, struct error *error);

setting_take take_number, take_choice, take_switch, take_text, take_word, take_secret, take_secret_file;
setting_take take_url, take_endpoint, take_listen;
setting_take take_sink, take_queues, take_bucket, take_prefix, take_control, take_readable_file, take_absent;
setting_take take_format, take_compression, take_codec, take_layout, take_align;
setting_take take_rust_log;

/* An accepted URL without user and password, which may be secret: malloc. */
char *settings_public_url(const char *url);

/* The table's spelling of a value. */
const char *setting_choice_name(const struct setting_choice *choices, int value);

extern const struct setting_choice setting_starts[];
extern const struct setting_choice setting_crash_points[];

#endif
