/*
 * The block of arguments and environment that the kernel gave this process and shows in /proc: process titles are
 * written into it, secrets that aren't ours are wiped out of it (spec 4.1).
 */
#ifndef SUPERVISOR_ENVIRONMENT_H
#define SUPERVISOR_ENVIRONMENT_H

/* First of all, from main(): takes the broker's secrets (PG_PASSWORD, JWT_SECRET, QUEEN_ENCRYPTION_KEY,
 * QUEEN_SYNC_SECRET) out of the environment and overwrites them where they stood, so that neither this process nor any
 * child shows them, and moves the rest of the environment away from where titles go. What argv points to is gone
 * afterwards: arguments are to be copied before. */
void environment_init(int argc, char **argv);

/* In a worker, after the fork: what a service manager meant for the supervisor alone (NOTIFY_SOCKET, WATCHDOG_*). */
void environment_leave_service(void);

/* What ps shows. Cut where the block is too small; does nothing before environment_init(). */
void environment_set_title(const char *title);

#endif
