/*
 * What `recover` knows before it writes: the three documents that a queue has in the broker, the windows that its
 * manifests prove, and whether a pointer may be made of them (spec 3.5, 4.4). Pure: no broker and no bucket.
 */
#ifndef SUPERVISOR_COMMANDS_RECOVERY_H
#define SUPERVISOR_COMMANDS_RECOVERY_H

#include <stdbool.h>

#include "common/lake/documents.h"
#include "common/lake/manifest.h"

enum recovery_presence { RECOVERY_ABSENT, RECOVERY_READ, RECOVERY_UNREADABLE };

struct recovery {
    /* The documents. */
    enum recovery_presence committed;
    int64_t committed_k;
    int64_t committed_version; /* 0: absent */
    enum recovery_presence intent;
    struct lake_intent window; /* the intent's */
    bool leased;
    char holder[128]; /* the instance that has the lease */
    /* The lake. */
    bool overtaken;            /* there is a manifest of recovery_beyond() */
    struct window_bounds last; /* k 0: no window */
    uint64_t records;          /* of the last */
    uint64_t bytes;
    struct window_bounds named; /* by the manifest of the intent's k; k 0: there is none */
};

/* One row of the kv, whose key ends in "committed", "intent" or "lease". */
void recovery_take_row(struct recovery *recovery, const struct settings *settings, const struct kv_row *row);
/* The manifests, in the order of k; the documents have been taken before. */
void recovery_take_window(struct recovery *recovery, const struct manifest *manifest);
void recovery_free(struct recovery *recovery);

/* The window whose manifest proves that the pointer was set back: one that no sink with these documents can have written.
 * 0 where there is no such window, since the pointer is missing or can't be right anyway. */
int64_t recovery_beyond(const struct recovery *recovery);

/* Whether a pointer is missing that may be rebuilt: nobody holds the queue, and there is none, or none that can be right:
 * one that can't be read, or one that its own intent or a manifest proves to have been set back. 0, or QS_ERROR_INPUT
 * with the reason to refuse. Asked before the lake is proved, and again before anything is written. */
int recovery_check_documents(const struct recovery *recovery, const struct settings *settings, struct error *error);
/* Whether the intent, if there is one, is of the last window or of the one behind it. As above. */
int recovery_check_intent(const struct recovery *recovery, struct error *error);

#endif
