/* Other processes of this machine. */
#ifndef COMMON_PROCESS_H
#define COMMON_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether it still runs. One that has ended and that nobody waits for keeps its number (a zombie; under an init that
 * reaps no orphans, as in many containers, for good) but does not. Where /proc can't be read such a one counts as
 * running. Source: proc_pid_stat(5). */
bool process_runs(pid_t pid);

#endif
