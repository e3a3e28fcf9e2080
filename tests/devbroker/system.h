/*
 * Which of the system's interfaces the development broker uses: included before any system header.
 *
 * GNU's, for rwlocks whose writers aren't starved by a crowd of fetches, and for POLLRDHUP.
 */
#ifndef DEVBROKER_SYSTEM_H
#define DEVBROKER_SYSTEM_H

#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif

#endif
