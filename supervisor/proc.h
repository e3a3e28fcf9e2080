/*
 * What the kernel knows of a worker's process.
 */
#ifndef SUPERVISOR_PROC_H
#define SUPERVISOR_PROC_H

#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* 0 where it can't be told. */
uint64_t proc_resident_bytes(pid_t pid);
double proc_cpu_seconds(pid_t pid);

/* Adds a dead process's time to *sum: what the kernel counted, or what had been seen while it lived if that was more
 * (the two are rounded differently, and a total never goes down). */
void proc_add_usage(const struct rusage *usage, double seen, double *sum);

#endif
