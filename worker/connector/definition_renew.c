/*
 * Definitions that run, and what has become of their files since: definition.h. Nothing but what a definition says
 * changes, so whoever has its number or its key keeps them.
 */
#include "worker/connector/definition.h"

#include <string.h>

#include "common/log.h"

static struct definition *find(const struct definitions *definitions, const char *key)
{
    for (size_t i = 0; i < definitions->count; i++) {
        if (strcmp(definitions->list[i].key, key) == 0) {
            return &definitions->list[i];
        }
    }
    return NULL;
}

/* A file that can't even be read says no key: then it is known by its name. */
static bool is_of(const struct definition_fault *fault, const struct definition *definition)
{
    return fault->key != NULL ? strcmp(fault->key, definition->key) == 0
                              : strcmp(fault->source, definition->source) == 0;
}

static void exchange(struct definition *one, struct definition *other)
{
    struct definition kept = *one;
    char *key = one->key;

    *one = *other;
    one->key = key;
    kept.key = other->key;
    *other = kept;
}

static const struct definition_fault *fault_of(const struct definitions *fresh, const struct definition *definition)
{
    for (size_t i = 0; i < fresh->fault_count; i++) {
        if (is_of(&fresh->faults[i], definition)) {
            return &fresh->faults[i];
        }
    }
    return NULL;
}

/* A fault first: beside a file that is broken another may have its key, of a lower version. */
static void renew(struct definition *definition, struct definitions *fresh)
{
    const struct definition_fault *fault = fault_of(fresh, definition);
    struct definition *found = find(fresh, definition->key);

    if (fault == NULL && found != NULL) {
        exchange(definition, found);
        return;
    }
    log_line(LOG_ERROR, definition->key, "goes on with the definition that it has: %s",
             fault != NULL
                 ? fault->message
                 : "no file has an enabled one of its key any more, and to end takes a restart of the whole pool");
}

static void tell_fault(const struct definitions *definitions, const struct definition_fault *fault)
{
    for (size_t i = 0; i < definitions->count; i++) {
        if (is_of(fault, &definitions->list[i])) {
            return;
        }
    }
    log_line(LOG_ERROR, fault->key, "the connector stays down: %s", fault->message);
}

void definitions_renew(struct definitions *definitions, struct definitions *fresh)
{
    for (size_t i = 0; i < definitions->count; i++) {
        renew(&definitions->list[i], fresh);
    }
    for (size_t i = 0; i < fresh->count; i++) {
        if (find(definitions, fresh->list[i].key) == NULL) {
            log_line(LOG_WARN, fresh->list[i].key, "%s: a new definition, which takes a restart of the whole pool",
                     fresh->list[i].source);
        }
    }
    for (size_t i = 0; i < fresh->fault_count; i++) {
        tell_fault(definitions, &fresh->faults[i]);
    }
}
