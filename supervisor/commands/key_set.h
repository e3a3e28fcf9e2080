/*
 * Which keys a lake's manifests name, as 64 bits of each key's SHA-256: a lake may have tens of millions. That two of ten
 * million keys share them has a chance of one in three hundred thousand; a stray object would then be passed over.
 */
#ifndef SUPERVISOR_COMMANDS_KEY_SET_H
#define SUPERVISOR_COMMANDS_KEY_SET_H

#include <stdbool.h>

struct key_set;

struct key_set *key_set_new(void);
void key_set_free(struct key_set *set);
/* False where it is in it already. */
bool key_set_add(struct key_set *set, const char *key);
bool key_set_has(const struct key_set *set, const char *key);

#endif
