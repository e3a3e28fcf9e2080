/*
 * The status page, `GET /` of the listener: the pool at a glance for a person, on a phone too. One HTML page with no
 * script in it that asks for itself again; all that strangers wrote in it is escaped.
 */
#ifndef SUPERVISOR_PAGE_H
#define SUPERVISOR_PAGE_H

#include "supervisor/snapshot.h"

#define PAGE_CONTENT_TYPE   "text/html; charset=utf-8"
#define PAGE_QUEUES_MAX     200 /* rows; what is above is told as a number: the late ones come first */
#define PAGE_WORKERS_MAX    64  /* likewise: those that aren't running come first */
#define PAGE_CONNECTORS_MAX 64  /* likewise: those that are down come first */
#define PAGE_REFRESH_S      5

/* The snapshot is to be sorted. The whole page, malloc. */
char *page_write(const struct snapshot *snapshot);

/* The header's value that lets a browser do nothing with it but show it: its own style, by hash, and nothing else. */
const char *page_security_policy(void);

#endif
