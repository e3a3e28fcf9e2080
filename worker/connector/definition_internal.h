/* The parts of definition.h: what is read from a tree, and how the environment changes that tree before. */
#ifndef WORKER_CONNECTOR_DEFINITION_INTERNAL_H
#define WORKER_CONNECTOR_DEFINITION_INTERNAL_H

#include "worker/connector/definition.h"
#include "worker/connector/toml.h"

struct definition_field {
    const char *name;
    enum toml_type type;
};

/* Ended by a NULL name. */
extern const struct definition_field definition_fields[];
extern const struct definition_field definition_topic_fields[];

/* Reads a definition whose key is known; on failure nothing is left to free. Messages don't name the file. */
int definition_read(const struct toml_value *root, struct definition *definition, struct error *error);
void definition_free(struct definition *definition);
/* A key: letters, digits, `-`, `_`, `.`. QS_ERROR_INPUT. */
int definition_check_key(const struct toml_value *root, struct error *error);

/* `line 3: batch_length = …: expected …`, and QS_ERROR_INPUT. value may be NULL: it is missing. */
int definition_refuse(const char *name, const struct toml_value *value, const char *expected, struct error *error);
int definition_unknown(const struct toml_value *value, const struct definition_field *fields, struct error *error);

/* Applies to the tree of `keys[own]` what the environment says of it and of no longer key. Names that fit no key are
 * somebody else's. */
int definition_override(struct toml_value *root, const char *const *keys, size_t key_count, size_t own,
                        char *const *environment, struct error *error);

/* A pattern as librdkafka takes it, anchored at the start; malloc. NULL and *error where it is no POSIX extended regular
 * expression. \d and \D are understood too. */
char *definition_pattern(const char *pattern, struct error *error);

#endif
