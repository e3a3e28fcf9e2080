/*
 * A worker's outside: the Queen client and the object store that the settings name, and the count of requests to the
 * store (spec 3.11). The boot probes (3.2) use them too.
 */
#ifndef WORKER_SERVICES_H
#define WORKER_SERVICES_H

#include "common/object_store.h"
#include "common/queen_api.h"
#include "common/reactor.h"
#include "common/report.h"
#include "common/settings.h"

struct services {
    struct queen_api *queen;
    struct object_store *store;
    struct report_request_count counts[REPORT_CODES_MAX];
    size_t count;
};

/* settings must outlive them. On failure nothing is left open. */
int services_open(struct services *services, struct reactor *reactor, const struct settings *settings,
                  struct error *error);
/* One of the two alone: the other is NULL. */
int services_open_queen(struct services *services, struct reactor *reactor, const struct settings *settings,
                        struct error *error);
int services_open_store(struct services *services, struct reactor *reactor, const struct settings *settings,
                        struct error *error);
void services_close(struct services *services);
void services_request_counts(const struct services *services, struct report_worker *report);

#endif
