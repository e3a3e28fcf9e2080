/*
 * What the pool says of itself: the paths of its listener (spec 3.11) and the requests of its control socket (4.3). All
 * of it is written from what the supervisor knows already: nobody is asked, nothing is waited for.
 */
#ifndef SUPERVISOR_ANSWERS_H
#define SUPERVISOR_ANSWERS_H

#include "common/settings.h"
#include "supervisor/collect.h"
#include "supervisor/listener.h"
#include "supervisor/workers.h"

struct answers {
    const struct settings *settings;
    const struct collect *collect;
    struct workers *workers;
    const char *phase;      /* of the pool, as snapshot.h names it */
    struct mono_ms started; /* the pool */
    unsigned formats;       /* whose bytes were ever shown: a series doesn't vanish (spec 4.3) */
};

/* A listener_route and a control_answer; argument: a struct answers. */
bool answers_path(void *argument, const char *path, struct listener_answer *answer);
char *answers_request(void *argument, const char *request);

#endif
