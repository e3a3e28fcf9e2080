/*
 * See proc.h.
 */
#include "supervisor/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

uint64_t proc_resident_bytes(pid_t pid)
{
    char path[64];
    char text[128] = "";
    char *second;
    ssize_t size;
    int descriptor;

    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return 0;
    }
    size = read(descriptor, text, sizeof text - 1);
    (void)close(descriptor);
    if (size <= 0) {
        return 0;
    }
    (void)strtoull(text, &second, 10); /* the first field is the address space, the second what is resident */
    return strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

double proc_cpu_seconds(pid_t pid)
{
    clockid_t clock;
    struct timespec time;

    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) {
        return 0;
    }
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void proc_add_usage(const struct rusage *usage, double seen, double *sum)
{
    double counted = (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
                     (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;

    *sum += counted > seen ? counted : seen;
}
