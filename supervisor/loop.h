/*
 * The supervisor (spec 4.1): boot, one loop over signals, workers, probe and listener, and the stop.
 */
#ifndef SUPERVISOR_LOOP_H
#define SUPERVISOR_LOOP_H

#include "common/settings.h"
#include "supervisor/probe.h"
#include "supervisor/reload.h"
#include "supervisor/workers.h"

/* What runs in the children: the program gives the worker's own, tests give others. */
struct supervisor_hooks {
    worker_function *run;
    probe_function *ask;
    probe_clean_function *clean;
    connector_function *run_connector; /* may be NULL where there are no connectors */
    reload_read *reload;               /* in this process: the settings for a rolling restart; NULL: there is none */
    void *reload_argument;
};

/* Returns the exit code of the process (spec 3.2, 4.2); what failed has been said on stderr. To be called once, from a
 * process that has one thread: it takes over signals for good. A rolling restart replaces *settings. */
int supervisor_run(struct settings *settings, const struct supervisor_hooks *hooks);
/* With connectors beside the queues that the settings name, or, where they name none, alone: then nothing is probed.
 * connectors must outlive the call; a rolling restart renews them. */
int supervisor_run_connectors(struct settings *settings, struct worker_connectors *connectors,
                              const struct supervisor_hooks *hooks);

#endif
