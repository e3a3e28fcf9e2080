/*
 * What lies in the bucket, held against what the manifests name: proof.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "supervisor/command.h"
#include "supervisor/commands/key_set.h"
#include "supervisor/commands/progress.h"
#include "supervisor/commands/proof.h"

#define WAITING_MAX 1024 /* objects whose HEAD is put off */
#define LOOKS       4    /* for a manifest that may be on its way */
#define LOOK_MS     1000

/* ---- sizes ---- */

int proof_size(struct proof *proof, const char *key, uint64_t expected, const struct error *error, uint64_t size)
{
    if (error->code == QS_OK && size == expected) {
        return 1;
    }
    if (error->code == QS_OK) {
        proof_fault(proof, key, "it has %" PRIu64 " bytes: expected %" PRIu64, size, expected);
    } else if (error->code == QS_ERROR_NOT_FOUND) {
        proof_fault(proof, key, "the object is missing: expected %" PRIu64 " bytes", expected);
    } else if (bucket_exit_code(error) != COMMAND_UNREACHABLE) {
        proof_fault(proof, key, "%s: expected %" PRIu64 " bytes", error->message, expected);
    } else {
        proof->failure = *error;
        return -1;
    }
    return 0;
}

static const char *next_waiting(void *argument, size_t which)
{
    const struct proof *proof = argument;

    return which < proof->waiting_count ? proof->waiting[which].key : NULL;
}

static int take_size(void *argument, size_t which, struct bucket_answer *answer)
{
    struct proof *proof = argument;
    const struct proof_object *object = &proof->waiting[which];

    return proof_size(proof, object->key, object->bytes, &answer->error, answer->size) < 0 ? -1 : 0;
}

int proof_objects_end(struct proof *proof)
{
    const struct bucket_asking asking = {
        .question = BUCKET_SIZE, .next = next_waiting, .take = take_size, .argument = proof};
    int code = bucket_ask(proof->bucket, &asking);

    for (size_t i = 0; i < proof->waiting_count; i++) {
        free(proof->waiting[i].key);
    }
    proof->waiting_count = 0;
    return code;
}

int proof_objects(struct proof *proof, const struct manifest *manifest)
{
    int code = 0;

    for (size_t i = 0; i < manifest->object_count && code == 0; i++) {
        const struct manifest_object *object = &manifest->objects[i];
        proof->waiting =
            memory_grow(proof->waiting, &proof->waiting_capacity, proof->waiting_count + 1, sizeof *proof->waiting);
        proof->waiting[proof->waiting_count++] = (struct proof_object){memory_copy_text(object->key), object->bytes};
        if (proof->waiting_count == WAITING_MAX) {
            code = proof_objects_end(proof);
        }
    }
    return code;
}

/* ---- strays ---- */

/* The window that a key is of, by its name `w-<k>-…`; 0 where it has no such name. */
static int64_t window_of(const char *key)
{
    const char *name = strrchr(key, '/');

    name = name != NULL ? name + 1 : key;
    if (strncmp(name, "w-", 2) != 0 || strspn(name + 2, "0123456789") < 10) {
        return 0;
    }
    return strtoll(name + 2, NULL, 10);
}

struct looking {
    const char *key; /* of a manifest */
    const char *object;
    bool there;
    bool named;
    struct error failure;
};

static const char *next_manifest(void *argument, size_t which)
{
    const struct looking *looking = argument;

    return which == 0 ? looking->key : NULL;
}

static int take_manifest(void *argument, size_t which, struct bucket_answer *answer)
{
    struct looking *looking = argument;
    struct manifest manifest;

    (void)which;
    if (answer->error.code != QS_OK && answer->error.code != QS_ERROR_NOT_FOUND) {
        looking->failure = answer->error;
        return -1;
    }
    if (answer->error.code != QS_OK ||
        manifest_parse(answer->bytes, (size_t)answer->size, &manifest, &answer->error) != 0) {
        return 0;
    }
    looking->there = true;
    for (size_t i = 0; i < manifest.object_count; i++) {
        looking->named = looking->named || strcmp(manifest.objects[i].key, looking->object) == 0;
    }
    manifest_free(&manifest);
    return 0;
}

static void pause_ms(struct bucket *bucket, int64_t wait)
{
    int64_t end = clock_mono().v + wait;

    while (clock_mono().v < end) {
        reactor_run_once(bucket->reactor, end - clock_mono().v);
    }
}

/* A window beyond the last that was found: while the sink works, its manifest may have come since, or comes within a
 * moment. object: what the manifest has to name, NULL: anything. 1: so it is. 0: it isn't. Negative: the bucket failed. */
static int look_for_manifest(struct proof *proof, const char *object, int64_t k)
{
    char key[LAKE_KEY_SIZE];
    struct looking looking = {.key = key, .object = object, .named = object == NULL};
    struct bucket_asking asking = {.question = BUCKET_BYTES,
                                   .size_limit = (size_t)1 << 30,
                                   .next = next_manifest,
                                   .take = take_manifest,
                                   .argument = &looking};

    if (lake_manifest_key(proof->bucket->settings.prefix, proof->escaped, k, key, NULL) != 0) {
        return 0;
    }
    for (int i = 0; i < LOOKS && !looking.there; i++) {
        if (i > 0) {
            pause_ms(proof->bucket, LOOK_MS);
        }
        if (bucket_ask(proof->bucket, &asking) != 0) {
            proof->failure = looking.failure;
            return -1;
        }
    }
    return looking.there && looking.named ? 1 : 0;
}

/* An object of the window that is begun and has no manifest yet: who redoes it writes the same key. */
static bool is_pending(const struct proof *proof, const char *key)
{
    const struct window_bounds *bounds = &proof->pending;
    const char *name = strrchr(key, '/');
    char start[96];

    name = name != NULL ? name + 1 : key;
    int size = snprintf(start, sizeof start, "w-%010" PRId64 "-%016" PRId64 "-%016" PRId64, bounds->k, bounds->start.v,
                        bounds->end.v);
    return bounds->k > 0 && strncmp(name, start, (size_t)size) == 0 && (name[size] == '.' || name[size] == '-');
}

/* Whether the manifest of window k was found, and is one. */
static bool was_read(const struct proof *proof, int64_t k)
{
    char key[LAKE_KEY_SIZE];

    return lake_manifest_key(proof->bucket->settings.prefix, proof->escaped, k, key, NULL) == 0 &&
           key_set_has(proof->named, key);
}

static int judge_stray(struct proof *proof, const char *key, bool *looked)
{
    int64_t k = window_of(key);
    bool beyond = k > proof->last_k;

    /* Once is enough: what the sink does just now is one window. */
    if (beyond && !*looked) {
        int code = look_for_manifest(proof, key, k);
        if (code != 0) {
            return code < 0 ? code : 0;
        }
        *looked = true;
    }
    if (beyond) {
        proof_fault(proof, key,
                    "no manifest names it: window %" PRId64 " is being written, or was and its manifest is missing", k);
    } else if (k > 0 && !was_read(proof, k)) {
        proof_fault(proof, key, "no manifest names it: expected one of window %" PRId64 " that does, and can be read",
                    k);
    } else {
        proof_fault(proof, key, "no manifest names it: expected nothing of that name");
    }
    return 0;
}

static int list(struct proof *proof, const char *prefix, bucket_keep *keep, struct bucket_keys *keys)
{
    if (bucket_list(proof->bucket, prefix, keep, proof, keys, &proof->failure) == 0) {
        return 0;
    }
    bucket_keys_free(keys);
    return -1;
}

static bool is_stray(void *argument, const char *key)
{
    const struct proof *proof = argument;

    return !key_set_has(proof->named, key) && !is_pending(proof, key);
}

static int check_data(struct proof *proof)
{
    const char *prefix = proof->bucket->settings.prefix;
    char *folder = memory_format("%s%squeue=%s/", prefix, prefix[0] != '\0' ? "/" : "", proof->escaped);
    struct bucket_keys keys = {0};
    bool looked = false;
    int code = list(proof, folder, is_stray, &keys);

    for (size_t i = 0; i < keys.count && code == 0; i++) {
        code = judge_stray(proof, keys.keys[i], &looked);
    }
    bucket_keys_free(&keys);
    free(folder);
    return code;
}

/* The number of `…/<10 digits><end>`; -1 where the name is another. */
static int64_t numbered(const char *key, const char *end)
{
    const char *name = strrchr(key, '/') + 1;

    return strspn(name, "0123456789") == 10 && strcmp(name + 10, end) == 0 ? strtoll(name, NULL, 10) : -1;
}

static bool is_no_manifest(void *argument, const char *key)
{
    (void)argument;
    return numbered(key, ".json") < 0;
}

static bool is_odd_checkpoint(void *argument, const char *key)
{
    const struct proof *proof = argument;
    int64_t k = numbered(key, ".json.zst");

    return k < 0 || k > proof->last_k;
}

/* One of the two folders below _queen/<queue>/: a name that isn't one of it, a checkpoint beyond the last window. */
static int check_own(struct proof *proof, const char *name, bucket_keep *is_odd)
{
    const char *prefix = proof->bucket->settings.prefix;
    char *folder = memory_format("%s%s_queen/%s/%s/", prefix, prefix[0] != '\0' ? "/" : "", proof->escaped, name);
    struct bucket_keys keys = {0};
    int code = list(proof, folder, is_odd, &keys);

    for (size_t i = 0; i < keys.count && code >= 0; i++) {
        int64_t k = numbered(keys.keys[i], ".json.zst");
        code = k > 0 ? look_for_manifest(proof, NULL, k) : 0;
        if (code == 0 && k > 0) {
            proof_fault(proof, keys.keys[i], "a checkpoint of window %" PRId64 ": its manifest is missing", k);
        } else if (code == 0) {
            proof_fault(proof, keys.keys[i], "no manifest or checkpoint has such a name");
        }
    }
    bucket_keys_free(&keys);
    free(folder);
    return code < 0 ? code : 0;
}

int proof_strays(struct proof *proof)
{
    progress_show("%s: looking for what no manifest names", proof->queue);
    int code = check_data(proof);

    if (code == 0) {
        code = check_own(proof, "windows", is_no_manifest);
    }
    if (code == 0) {
        code = check_own(proof, "checkpoint", is_odd_checkpoint);
    }
    progress_clear();
    return code;
}
