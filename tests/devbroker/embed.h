/*
 * Embedded mode, the broker's half of the contract (spec 4.6): the sink as a child process that the broker starts,
 * watches, starts again and ends.
 *
 * All of it happens in the main thread, between poll() calls of its loop: the kernel sends the child its death signal
 * when the thread that forked it ends, so that has to be one that lives as long as the process. Only embed_status() is
 * for any thread. Everywhere but in embed_plan() a NULL embed is a broker that embeds nothing.
 */
#ifndef DEVBROKER_EMBED_H
#define DEVBROKER_EMBED_H

#include "text.h"

struct embed;

/* Reads the environment. *embed stays NULL unless a sink is wanted: by `asked` (--embed) or by QUEEN_S3_EMBEDDED.
 * Returns 0, or the exit code 2 after a line that says what is refused. */
int embed_plan(bool asked, struct embed **embed);
/* The child has to be gone. */
void embed_free(struct embed *embed);

/* loopback_url is the broker's own, as its listener was bound; QUEEN_URL of the broker's environment wins over it. */
void embed_start(struct embed *embed, const char *loopback_url);

/* What the loop has to wait for: the child's output (negative: none), SIGCHLD, and the time given, after any of which
 * it calls embed_turn(). A negative time is no limit. */
int embed_descriptor(const struct embed *embed);
int64_t embed_wait_ms(const struct embed *embed);
void embed_turn(struct embed *embed);

/* SIGTERM to the child's group; SIGKILL once QUEEN_S3_SHUTDOWN_GRACE_MS are over, or at once. */
void embed_stop(struct embed *embed);
void embed_kill(struct embed *embed);
bool embed_is_down(const struct embed *embed);

/* The `s3` block of GET /status, as `,"s3":{...}`; nothing where nothing is embedded. */
void embed_status(struct embed *embed, struct text *to);

#endif
