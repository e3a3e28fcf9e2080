/*
 * What every object store shares beside the table: how its operations are called in metrics (spec 3.9) and in errors.
 */
#include "common/object_store.h"

#include <string.h>

const char *store_operation_name(enum store_operation operation)
{
    switch (operation) {
    case STORE_PUT: return "put";
    case STORE_GET: return "get";
    case STORE_HEAD: return "head";
    case STORE_LIST: return "list";
    case STORE_DELETE: return "delete";
    case STORE_MULTIPART_CREATE: return "multipart_create";
    case STORE_MULTIPART_PART: return "multipart_part";
    case STORE_MULTIPART_COMPLETE: return "multipart_complete";
    case STORE_MULTIPART_ABORT: return "multipart_abort";
    case STORE_OPERATION_COUNT: break;
    }
    return "?";
}

void store_error_drop_key(struct error *error, const char *key)
{
    size_t size = strlen(key);

    for (int operation = 0; operation < STORE_OPERATION_COUNT; operation++) {
        const char *name = store_operation_name((enum store_operation)operation);
        char *blank = error->message + strlen(name);

        if (strncmp(error->message, name, strlen(name)) == 0 && blank[0] == ' ' && strncmp(blank + 1, key, size) == 0 &&
            blank[1 + size] == ':') {
            memmove(blank, blank + 1 + size, strlen(blank + 1 + size) + 1);
            return;
        }
    }
}
