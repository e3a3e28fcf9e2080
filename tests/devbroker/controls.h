/*
 * The control routes under /_dev/: what tests do to the broker. No real broker has them, and nothing of the sink may
 * ever ask for one.
 */
#ifndef DEVBROKER_CONTROLS_H
#define DEVBROKER_CONTROLS_H

#include "broker.h"

/* Answers a control call; path is behind "/_dev/", namespace is the query parameter ns or NULL. (GET log is not among
 * them: export.h.) */
void controls_answer(struct broker *broker, const char *method, const char *path, const char *namespace,
                     struct slice body, struct answer *answer);

#endif
