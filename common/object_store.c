/*
 * The one thing that every object store shares beside the table: how its operations are called in metrics (spec 3.9).
 */
#include "common/object_store.h"

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
