/*
 * How one partition's log is cut into files, each of them exactly once (spec 5.4): a pure engine. It holds no socket,
 * record, thread or clock: events in, the next action out.
 *
 *     resolve → commit the position → read …  a file is complete → commit {its start, note of its cut} → upload
 *             → commit its end → (meanwhile the next file fills)
 *
 * What makes it exact: the group's offset never points into a file. It stands at the start of the file that is next,
 * and before that file may exist anywhere, its end, key and options are noted with the offset. So whoever is given the
 * partition finds either a start, and is free to cut as it likes, or a start with a note, and rebuilds that very file.
 * An object that was put twice was put twice with the same bytes.
 *
 * Files tile: each begins where the one before ended, whatever holes the log has.
 */
#ifndef WORKER_CONNECTOR_CUT_H
#define WORKER_CONNECTOR_CUT_H

#include <stdbool.h>
#include <stdint.h>

#define CUT_NO_OFFSET INT64_C(-1)

enum cut_state {
    CUT_RESOLVING,   /* waits for cut_resolved() */
    CUT_ASKING,      /* waits for cut_object(): whether the noted file is up */
    CUT_POSITIONING, /* its position is being committed; nothing is read yet */
    CUT_READING,
    CUT_GONE /* revoked, lost or stopped: takes no event any more */
};

/* The file that is on its way out, while the next one fills. */
enum cut_flight {
    CUT_GROUNDED,  /* there is none */
    CUT_FIXING,    /* its cut is being committed */
    CUT_UPLOADING, /* its cut is durable */
    CUT_ADVANCING  /* it is up; its end is being committed */
};

/* What is to be done now. A commit or an upload that fails is done again until it is through: cut_again(). */
enum cut_action {
    CUT_NOTHING,
    CUT_ASK_OBJECT,      /* is there an object under the note's key? */
    CUT_COMMIT_POSITION, /* offset `start`, no note */
    CUT_READ,            /* from `next` on */
    CUT_COMMIT_NOTE,     /* offset `flight_start`, with the note of the file in flight */
    CUT_UPLOAD,          /* the file in flight */
    CUT_COMMIT_END       /* offset `flight_next`, no note */
};

struct cut {
    enum cut_state state;
    enum cut_flight flight;
    bool noted;        /* the broker keeps notes; else a file goes up with its cut unsaid, and the next assignee has to
                            cut alike by itself */
    bool rebuilding;   /* the file being filled is the noted one, up to rebuild_next and no further */
    int64_t committed; /* the group's offset as far as it is acknowledged; CUT_NO_OFFSET: none */
    int64_t start;     /* of the file being filled */
    int64_t next;      /* all below has been taken in or passed over, or never was */
    int64_t rebuild_next;
    int64_t flight_start;
    int64_t flight_next;
};

/* What is found of a partition when it is assigned. */
struct cut_found {
    int64_t committed; /* CUT_NO_OFFSET: none */
    bool has_note;     /* of a cut, with: */
    int64_t note_next; /* above committed */
    int64_t low;       /* first offset that the log still has */
    int64_t high;      /* one past its last */
    bool reset_to_end; /* auto_offset_reset: latest */
};

/* What an operator has to know of the resolution. */
enum cut_finding {
    CUT_FOUND_FIRST,    /* no offset was committed before */
    CUT_FOUND_POSITION, /* goes on where it was */
    CUT_FOUND_FILE,     /* rebuilds the noted file */
    CUT_FOUND_GAP,      /* retention took offsets from `committed` to `low` before they were read */
    CUT_FOUND_TORN_FILE, /* of the noted file too, and what is left of it doesn't replace it where it is up: CUT_ASKING */
    CUT_FOUND_NEW_LOG    /* the log ends before `committed`: the topic was created again, read from its start */
};

/* Zeroes it: CUT_RESOLVING. */
void cut_begin(struct cut *cut, bool noted);

/* Whether the log ends before what is committed. A leader that has just been elected may say so for a moment. */
bool cut_ends_early(const struct cut_found *found);

enum cut_action cut_resolved(struct cut *cut, const struct cut_found *found, enum cut_finding *finding);

/* The answer to CUT_ASK_OBJECT. Where it is up, it is done with. Where nobody may tell, what the log still has of it goes
 * up under a key of its own: records may then be in two objects, which is better than in none. */
enum cut_object { CUT_OBJECT_UP, CUT_OBJECT_ABSENT, CUT_OBJECT_UNKNOWN };
enum cut_action cut_object(struct cut *cut, enum cut_object object);

/* A commit was acknowledged. */
enum cut_action cut_committed(struct cut *cut);
/* The object is there. */
enum cut_action cut_uploaded(struct cut *cut);
/* What is under way and has to be done again, after a failure; CUT_NOTHING where there is nothing. */
enum cut_action cut_again(const struct cut *cut);

enum cut_verdict {
    CUT_TAKE,       /* it belongs to the file being filled: then cut_took() */
    CUT_REPEAT,     /* it was there before: ignored */
    CUT_CLOSE_FIRST /* the file being filled ends before it: cut_close(), then asked again */
};
/* A record of the log, in order of offsets. Only while CUT_READING. */
enum cut_verdict cut_offer(const struct cut *cut, int64_t offset);
/* It was taken into the file, or passed over. True where the file is thereby complete, whatever its size. */
bool cut_took(struct cut *cut, int64_t offset);
/* The log was read up to `offset` (exclusive) and has no record more. True where the file being rebuilt is thereby
 * complete. */
bool cut_reached(struct cut *cut, int64_t offset);

/* Whether a complete file can go: none is in flight. Until then nothing more is to be offered. */
bool cut_can_close(const struct cut *cut);
/* The file being filled is complete and becomes the one in flight; a new one begins where it ends. empty: it has no
 * record, and nothing goes up for its range. Only while cut_can_close(). */
enum cut_action cut_close(struct cut *cut, bool empty);

void cut_leave(struct cut *cut);

#endif
