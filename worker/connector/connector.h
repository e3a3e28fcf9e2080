/*
 * Connectors as the supervisor knows them (spec 5.4): definitions that were read, and a worker for each. Part of what
 * worker/worker.h offers.
 */
#ifndef WORKER_CONNECTOR_CONNECTOR_H
#define WORKER_CONNECTOR_CONNECTOR_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/settings.h"

struct worker_connectors;

/* Reads definitions from files and folders, and what environ(7) says of them and of the broker. Broken definitions are
 * kept beside the good ones. NULL and *error where nothing can be said at all: a folder that can't be read, a variable
 * of the broker's that isn't one. The paths must outlive them. */
struct worker_connectors *worker_connectors_load(const char *const *paths, size_t path_count, char *const *environment,
                                                 struct error *error);
void worker_connectors_free(struct worker_connectors *connectors);

/* Reads the definitions again, for workers that begin from now on. Which connectors there are stays, with number and
 * key; so does a definition that is broken now or gone. What is not as the files have it is logged, a line each. */
void worker_connectors_renew(struct worker_connectors *connectors, char *const *environment);

size_t worker_connectors_count(const struct worker_connectors *connectors);
/* Valid as long as the connectors are. */
const char *worker_connector_key(const struct worker_connectors *connectors, size_t number);
/* How long a file may be owed before /healthz says so, before the rule of 3.11 is applied: max_file_age or this. */
#define WORKER_CONNECTOR_AGE_MS 300000
int64_t worker_connector_age_ms(const struct worker_connectors *connectors, size_t number);

size_t worker_connectors_fault_count(const struct worker_connectors *connectors);
/* One line each. */
const char *worker_connectors_fault(const struct worker_connectors *connectors, size_t number);
/* The key of that broken definition; NULL where it does not even say that. */
const char *worker_connectors_fault_key(const struct worker_connectors *connectors, size_t number);

struct worker_connector_start {
    const struct settings *settings;
    const struct worker_connectors *connectors;
    size_t number;
    int report_descriptor; /* its end of the socket pair; non-blocking */
    uint64_t budget_bytes; /* its share, less what the process itself needs */
};

/* As worker_run(): until SIGTERM, with the same signals. 0: stopped; 2: what it was told can't be right, and it stays
 * down; 1: it is to be started again. */
int worker_run_connector(const struct worker_connector_start *start);

#endif
