/*
 * The settings as a person reads of them (spec 3.1): what queen-s3.conf(5) and `help` print, what a configuration file is
 * held against. The rows are the same from which settings.c reads, so nothing here can be true of the manual alone.
 *
 *     struct setting setting;
 *     for (size_t i = 0; setting_at(i, &setting); i++) …
 */
#ifndef COMMON_SETTING_TABLE_H
#define COMMON_SETTING_TABLE_H

#include <stdbool.h>
#include <stddef.h>

enum setting_flags {
    SETTING_REQUIRED = 1, /* the sink doesn't start without it; description says where it does */
    SETTING_SECRET = 2,   /* its value is shown nowhere */
    SETTING_BROKERS = 4,  /* read by a broker that starts the sink; accepted and ignored here */
    SETTING_SHARED = 8,   /* read by other programs too: nothing in it is an error here */
    SETTING_REFUSED = 16  /* known, so that the line that refuses it can say why */
};

/* Texts are static, and plain: no markup, no line feed. */
struct setting {
    const char *name;
    const char *initial;  /* the default, "zstd" or "min(cores, queues)"; NULL: none */
    const char *accepted; /* a noun phrase without a full stop, as it stands behind "expected" in an error */
    const char *description;
    const char *file_of; /* the variable whose value this one's file holds, "QUEEN_TOKEN"; NULL: not such a one */
    unsigned flags;      /* enum setting_flags */
};

/* The index-th in the order of spec 3.1, false past the last. */
bool setting_at(size_t index, struct setting *setting);
bool setting_find(const char *name, struct setting *setting);
/* The name that was meant by an unknown one, NULL where none is near (nearest.h). */
const char *setting_nearest(const char *name);

#endif
