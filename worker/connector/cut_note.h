/*
 * The note that a group's offset carries while a file is on its way (spec 5.4): all that is needed to build that very
 * file again, whatever the configuration says by then. JSON, in the metadata of the commit.
 */
#ifndef WORKER_CONNECTOR_CUT_NOTE_H
#define WORKER_CONNECTOR_CUT_NOTE_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/connector/definition.h"
#include "worker/connector/path_template.h"

/* Brokers take 4096 bytes (offset.metadata.max.bytes). */
#define CUT_NOTE_MAX 4096

/* A note that says nothing but that it is ours: to see whether the broker gives it back. */
#define CUT_NOTE_BLANK "{\"queen-s3\":1}"

struct cut_note {
    int64_t next;
    char key[SINK_KEY_MAX + 1];
    struct sink_shape shape;
    enum sink_schema schema;
    enum on_undecodable on_undecodable;
};

/* malloc; NULL and QS_ERROR_INPUT where it would be longer than a broker takes. */
char *cut_note_write(const struct cut_note *note, struct error *error);

enum cut_note_kind {
    CUT_NOTE_NONE, /* empty, blank, or somebody else's */
    CUT_NOTE_FILE,
    CUT_NOTE_UNREADABLE /* ours, and not understood: of a later version */
};
enum cut_note_kind cut_note_read(const char *bytes, size_t size, struct cut_note *note);

#endif
