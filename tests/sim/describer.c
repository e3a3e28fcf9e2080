/*
 * The describer (worker/describe.h) over the model of the bucket: a get, with all that can go wrong with one, and the same
 * reading of the object as in the real one.
 */
#include <openssl/evp.h>
#include <stdlib.h>

#include "common/memory.h"
#include "tests/sim/instance.h"

struct describe_call {
    struct object_store *store;
    struct store_call *get;
    struct window_shape shape;
    struct window_bounds bounds;
    describe_done *done;
    void *argument;
};

static void got(void *argument, const struct error *error, char *bytes, size_t size)
{
    struct describe_call *call = argument;
    struct object_description description = {0};
    struct error result = *error;
    if (error->code == QS_OK) {
        struct memory_object object = {bytes, size, 0};
        struct object_source source = object_source_memory(&object);
        if (describe_object(&source, &call->shape, &call->bounds, &description, &result) == 0) {
            description.bytes = size;
            EVP_Digest(bytes, size, description.sha256, NULL, EVP_sha256(), NULL);
        }
    }
    free(bytes);
    call->done(call->argument, &result, result.code == QS_OK ? &description : NULL);
    describe_free(&description);
    free(call);
}

static struct describe_call *describe_start(struct describer *describer, const char *key,
                                            const struct window_shape *shape, const struct window_bounds *bounds,
                                            describe_done *done, void *argument)
{
    struct describe_call *call = memory_new(1, sizeof *call);
    *call = (struct describe_call){.store = ((struct sim_describer *)describer)->store,
                                   .shape = *shape,
                                   .bounds = *bounds,
                                   .done = done,
                                   .argument = argument};
    call->get = call->store->operations->get(call->store, key, SIZE_MAX, got, call);
    return call;
}

static void describe_cancel(struct describer *describer, struct describe_call *call)
{
    (void)describer;
    call->store->operations->cancel(call->store, call->get);
    free(call);
}

const struct describer_operations sim_describer_operations = {describe_start, describe_cancel};
