/* See kafka_settings.h. */
#include "worker/connector/kafka_settings.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/memory.h"
#include "common/nearest.h"

#define PREFIX "PICOMQ_CONNECTORS_KAFKA__"

static const struct {
    const char *name;
    const char *property;
} rows[] = {{"BOOTSTRAP_SERVERS", "bootstrap.servers"},
            {"SECURITY_PROTOCOL", "security.protocol"},
            {"SASL__MECHANISM", "sasl.mechanisms"},
            {"SASL__MECHANISMS", "sasl.mechanisms"},
            {"SASL__USERNAME", "sasl.username"},
            {"SASL__PASSWORD", "sasl.password"},
            {"TLS__CA_FILE", "ssl.ca.location"},
            {"TLS__CERT_FILE", "ssl.certificate.location"},
            {"TLS__KEY_FILE", "ssl.key.location"},
            {"TLS__KEY_PASSWORD", "ssl.key.password"},
            {"TLS__VERIFY", "enable.ssl.certificate.verification"}};

#define ROW_COUNT (sizeof rows / sizeof *rows)

static const char *find(const char *name, size_t size)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (strlen(rows[i].name) == size && strncasecmp(rows[i].name, name, size) == 0) {
            return rows[i].property;
        }
    }
    return NULL;
}

static int refuse(const char *entry, size_t size, struct error *error)
{
    char *name = memory_copy(entry + strlen(PREFIX), size);
    struct nearest nearest;

    nearest_begin(&nearest, name);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        nearest_offer(&nearest, rows[i].name);
    }
    (void)error_set(error, QS_ERROR_INPUT, "unknown setting " PREFIX "%.100s%s%s%s", name,
                    nearest.name == NULL ? "" : "; did you mean " PREFIX, nearest.name == NULL ? "" : nearest.name,
                    nearest.name == NULL ? "" : "?");
    free(name);
    return QS_ERROR_INPUT;
}

static void add(struct kafka_settings *settings, const char *property, const char *value)
{
    if (settings->count < KAFKA_SETTINGS_MAX) {
        char *copy = memory_format("%s", value);
        for (char *at = copy; strcmp(property, "security.protocol") == 0 && *at != '\0'; at++) {
            *at = (char)tolower((unsigned char)*at);
        }
        settings->list[settings->count++] = (struct kafka_setting){property, copy};
    }
}

int kafka_settings_read(char *const *environment, struct kafka_settings *settings, struct error *error)
{
    *settings = (struct kafka_settings){0};
    add(settings, "bootstrap.servers", "localhost:9092");
    for (; *environment != NULL; environment++) {
        const char *equals = strchr(*environment, '=');
        if (equals == NULL || equals[1] == '\0' || strncasecmp(*environment, PREFIX, strlen(PREFIX)) != 0) {
            continue;
        }
        size_t size = (size_t)(equals - *environment) - strlen(PREFIX);
        const char *property = find(*environment + strlen(PREFIX), size);
        if (property == NULL) {
            (void)refuse(*environment, size, error);
            kafka_settings_free(settings);
            return QS_ERROR_INPUT;
        }
        add(settings, property, equals + 1);
    }
    return 0;
}

void kafka_settings_free(struct kafka_settings *settings)
{
    for (size_t i = 0; i < settings->count; i++) {
        memory_free_secret(settings->list[i].value);
    }
    *settings = (struct kafka_settings){0};
}
