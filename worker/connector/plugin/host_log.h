/*
 * Log lines go to the host, through the function that it handed to open (spec 5.1), whichever part of the plugin says
 * them. Each thread says on whose behalf it runs; what a thread says on nobody's behalf is dropped.
 */
#ifndef WORKER_CONNECTOR_PLUGIN_HOST_LOG_H
#define WORKER_CONNECTOR_PLUGIN_HOST_LOG_H

#include <stddef.h>
#include <stdint.h>

typedef void (*pico_log_fn)(uint8_t level, const uint8_t *target, size_t target_len, const uint8_t *message,
                            size_t message_len);

/* Once a process, before any thread of the plugin: common/log.h now ends here. */
void host_log_start(void);
/* This thread speaks for that host function from now on, NULL: for nobody. Returns the one before. */
pico_log_fn host_log_enter(pico_log_fn log);

#endif
