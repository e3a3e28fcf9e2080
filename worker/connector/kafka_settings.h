/*
 * Where the log is (spec 5.4): `PICOMQ_CONNECTORS_KAFKA__…` as librdkafka's properties.
 *
 *     …BOOTSTRAP_SERVERS (localhost:9092), …SECURITY_PROTOCOL (any case)
 *     …SASL__MECHANISM, …SASL__USERNAME, …SASL__PASSWORD
 *     …TLS__CA_FILE, …TLS__CERT_FILE, …TLS__KEY_FILE, …TLS__KEY_PASSWORD, …TLS__VERIFY (true)
 */
#ifndef WORKER_CONNECTOR_KAFKA_SETTINGS_H
#define WORKER_CONNECTOR_KAFKA_SETTINGS_H

#include <stddef.h>

#include "common/error.h"

#define KAFKA_SETTINGS_MAX 16

struct kafka_setting {
    const char *property; /* librdkafka's name */
    char *value;
};

struct kafka_settings {
    struct kafka_setting list[KAFKA_SETTINGS_MAX];
    size_t count;
};

/* environment is as environ(7). An empty value counts as unset. 0, or QS_ERROR_INPUT for a variable with that beginning
 * that is none of these. kafka_settings_free() after success. */
int kafka_settings_read(char *const *environment, struct kafka_settings *settings, struct error *error);
void kafka_settings_free(struct kafka_settings *settings);

#endif
