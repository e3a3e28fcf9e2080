/*
 * `queen-s3 recover QUEUE`: rebuilds a pointer that was lost, from the manifests that prove what was committed (spec 3.5,
 * 4.4). What may be rebuilt stands in recovery.h; the lake is proved as `verify` does it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/memory.h"
#include "common/queen_client.h"
#include "supervisor/commands/arguments.h"
#include "supervisor/commands/commands.h"
#include "supervisor/commands/output.h"
#include "supervisor/commands/proof.h"
#include "supervisor/commands/recovery.h"

#define CALL_MS 10000
#define TRIES   4
#define WAIT_MS 1000

/* Takes whatever a call's answer says. */
typedef void take_answer(void *argument, const struct kv_answer *answer);

struct recovering {
    const char *queue;
    char escaped[LAKE_NAME_SIZE];
    struct bucket *bucket;
    struct queen_api *queen;
    struct recovery recovery;
    char *keys[3]; /* committed, intent, lease */
    /* The call under way. */
    bool done;
    struct error error;
    take_answer *take;
    /* What a write came to. */
    bool lost; /* a row was not as expected: nothing was written */
    int64_t lease_version;
};

enum { COMMITTED, INTENT, LEASE };

/* ---- calls ---- */

static void call_done(void *argument, const struct error *error, const struct kv_answer *answer)
{
    struct recovering *recovering = argument;

    recovering->done = true;
    recovering->error = *error;
    if (error->code == QS_OK) {
        recovering->take(recovering, answer);
    }
}

/* One attempt. */
static int call(struct recovering *recovering, const struct kv_operation *operations, size_t count, take_answer *take,
                struct error *error)
{
    struct queen_api *queen = recovering->queen;

    recovering->done = false;
    recovering->take = take;
    queen->operations->kv(queen, operations, count, CALL_MS, call_done, recovering);
    while (!recovering->done) {
        bucket_turn(recovering->bucket);
    }
    *error = recovering->error;
    return error->code;
}

static void wait_ms(struct bucket *bucket, int64_t wait)
{
    int64_t end = clock_mono().v + wait;

    while (clock_mono().v < end) {
        reactor_run_once(bucket->reactor, end - clock_mono().v);
    }
}

static void take_rows(void *argument, const struct kv_answer *answer)
{
    struct recovering *recovering = argument;

    for (size_t i = 0; answer->count > 0 && i < answer->results[0].row_count; i++) {
        recovery_take_row(&recovering->recovery, &recovering->bucket->settings, &answer->results[0].rows[i]);
    }
}

/* Forgets what was known of them, and reads the three documents. */
static int read_documents(struct recovering *recovering, struct error *error)
{
    struct recovery *recovery = &recovering->recovery;
    const char *const keys[] = {recovering->keys[COMMITTED], recovering->keys[INTENT], recovering->keys[LEASE]};
    const struct kv_operation get = {.kind = KV_GET_MANY, .keys = keys, .key_count = 3};
    int code = -1;

    for (int i = 0; i < TRIES && code != 0; i++) {
        if (i > 0) {
            wait_ms(recovering->bucket, WAIT_MS);
        }
        recovery->committed = RECOVERY_ABSENT;
        recovery->committed_version = 0;
        recovery->intent = RECOVERY_ABSENT;
        recovery->leased = false;
        code = call(recovering, &get, 1, take_rows, error);
        if (code != 0 && !error->retriable) {
            break;
        }
    }
    if (code != 0) {
        error_prefix(error, "reading the documents of the queue from %s (check QUEEN_URL, QUEEN_TOKEN)",
                     recovering->bucket->settings.queen_url);
    }
    return code;
}

/* ---- the write ---- */

static void take_written(void *argument, const struct kv_answer *answer)
{
    struct recovering *recovering = argument;

    recovering->lost =
        answer->precondition_failed || answer->count != 2 || !answer->results[0].applied || !answer->results[1].applied;
    if (!recovering->lost) {
        recovering->lease_version = answer->results[0].version;
    }
}

static void take_nothing(void *argument, const struct kv_answer *answer)
{
    (void)argument;
    (void)answer;
}

static char *make_lease(const struct settings *settings)
{
    uint64_t number = 0;
    char incarnation[17];
    char *instance = memory_format("%s (queen-s3 recover)", settings->instance);

    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
        number = (uint64_t)clock_mono().v;
    }
    (void)snprintf(incarnation, sizeof incarnation, "%016" PRIx64, number);
    char *lease = lease_format(instance, incarnation, clock_wall());
    free(instance);
    return lease;
}

/* Nobody may hold the queue while its pointer appears: the lease is taken in the same batch, and given back. */
static int write_pointer(struct recovering *recovering, const char *pointer, struct error *error)
{
    const struct recovery *recovery = &recovering->recovery;
    char *lease = make_lease(&recovering->bucket->settings);
    const struct kv_operation operations[] = {{.kind = KV_PUT_IF_ABSENT,
                                               .key = recovering->keys[LEASE],
                                               .value = lease,
                                               .ttl_seconds = recovering->bucket->settings.lease_ttl_ms / 1000,
                                               .required = true},
                                              {.kind = KV_PUT,
                                               .key = recovering->keys[COMMITTED],
                                               .value = pointer,
                                               .has_expect = true,
                                               .expect = recovery->committed_version,
                                               .required = true}};
    int code = call(recovering, operations, 2, take_written, error);

    free(lease);
    if (code == 0 && !recovering->lost) {
        const struct kv_operation release = {
            .kind = KV_DELETE, .key = recovering->keys[LEASE], .has_expect = true, .expect = recovering->lease_version};
        struct error ignored; /* it ends by itself */
        (void)call(recovering, &release, 1, take_nothing, &ignored);
    }
    return code;
}

/* The answer was lost: is the pointer there? */
static bool was_written(struct recovering *recovering, struct error *error)
{
    struct error reading;

    if (!error->retriable || read_documents(recovering, &reading) != 0) {
        return false;
    }
    return recovering->recovery.committed == RECOVERY_READ &&
           recovering->recovery.committed_k == recovering->recovery.last.k;
}

static int write_and_tell(struct recovering *recovering, const char *pointer)
{
    struct error error;
    int code = write_pointer(recovering, pointer, &error);

    if (code != 0 && !was_written(recovering, &error)) {
        return command_fail(COMMAND_UNREACHABLE, "%s: writing the pointer: %s: run it again to see whether it is there",
                            recovering->queue, error.message);
    }
    if (recovering->lost) {
        return command_fail(COMMAND_FAULT,
                            "%s: a pointer or a lease has appeared meanwhile: nothing was written, run it again",
                            recovering->queue);
    }
    output_line("%s: written; the sink goes on behind window %" PRId64 " when it tries the queue again, within a "
                "minute",
                recovering->queue, recovering->recovery.last.k);
    return EXIT_SUCCESS;
}

/* ---- the whole ---- */

static int take_window(struct proof *proof, const struct manifest *manifest)
{
    struct recovering *recovering = proof->argument;

    recovery_take_window(&recovering->recovery, manifest);
    return 0;
}

static int refuse(const struct recovering *recovering, const struct error *error)
{
    return command_fail(COMMAND_FAULT, "%s: %s; nothing was written", recovering->queue, error->message);
}

/* The lake is whole, of this sink, and goes with the intent. */
static int judge(const struct recovering *recovering, const struct proof *proof)
{
    const struct settings *settings = &recovering->bucket->settings;
    struct error error;

    proof_print_verdict(proof);
    if (proof->faults > 0) {
        return command_fail(COMMAND_FAULT,
                            "%s: the lake isn't whole, so no pointer can be made of it; nothing was written",
                            recovering->queue);
    }
    if (strcmp(proof->sink, settings->sink) != 0) {
        (void)error_set(&error, QS_ERROR_INPUT, "the lake is of the sink %s: set QUEEN_S3_SINK, which is %s",
                        proof->sink, settings->sink);
        return refuse(recovering, &error);
    }
    return recovery_check_intent(&recovering->recovery, &error) == 0 ? 0 : refuse(recovering, &error);
}

static int prove(struct recovering *recovering)
{
    struct proof proof;

    proof_begin(&proof, recovering->bucket, recovering->queue, false);
    proof.argument = recovering;
    if (recovering->recovery.intent == RECOVERY_READ) {
        proof.pending = recovering->recovery.window.bounds;
    }
    int code = proof_lake(&proof, take_window);
    if (code == 0) {
        code = judge(recovering, &proof);
    } else if (proof.failure.code == QS_OK) {
        code = command_fail(COMMAND_FAULT, "%s: nobody reads what is found; nothing was written", recovering->queue);
    } else {
        code = command_fail(COMMAND_UNREACHABLE, "%s: %s", recovering->queue, proof.failure.message);
    }
    proof_end(&proof);
    return code;
}

static int propose(struct recovering *recovering, bool yes)
{
    const struct recovery *recovery = &recovering->recovery;
    char key[LAKE_KEY_SIZE];
    struct error error;

    if (lake_manifest_key(recovering->bucket->settings.prefix, recovering->escaped, recovery->last.k, key, &error) !=
        0) {
        return refuse(recovering, &error);
    }
    const struct lake_pointer pointer = {.k = recovery->last.k,
                                         .end = recovery->last.end,
                                         .manifest = key,
                                         .records = recovery->records,
                                         .bytes = recovery->bytes,
                                         .at = clock_wall()};
    char *text = pointer_format(&pointer);
    output_line("%s: %s %s", recovering->queue, recovering->keys[COMMITTED], text);
    int code = EXIT_SUCCESS;
    if (yes) {
        code = write_and_tell(recovering, text);
    } else {
        output_line("%s: nothing was written: --yes writes it", recovering->queue);
    }
    free(text);
    return code;
}

/* A pointer that can be read may still be one of a backup. */
static int look_beyond(struct recovering *recovering, struct error *error)
{
    int64_t k = recovery_beyond(&recovering->recovery);
    char key[LAKE_KEY_SIZE];

    error_clear(error);
    if (k == 0 || lake_manifest_key(recovering->bucket->settings.prefix, recovering->escaped, k, key, error) != 0) {
        return error->code;
    }
    (void)bucket_ask_size(recovering->bucket, key, error);
    recovering->recovery.overtaken = error->code == QS_OK;
    return error->code == QS_ERROR_NOT_FOUND ? 0 : error->code;
}

static int recover(struct recovering *recovering, bool yes)
{
    const struct settings *settings = &recovering->bucket->settings;
    struct error error;

    if (read_documents(recovering, &error) != 0 || look_beyond(recovering, &error) != 0) {
        return command_fail(COMMAND_UNREACHABLE, "%s: %s", recovering->queue, error.message);
    }
    if (recovery_check_documents(&recovering->recovery, settings, &error) != 0) {
        return refuse(recovering, &error);
    }
    int code = prove(recovering);
    return code == 0 ? propose(recovering, yes) : code;
}

static struct queen_api *open_queen(const struct bucket *bucket, struct error *error)
{
    const struct settings *settings = &bucket->settings;
    const struct queen_client_options client = {
        .url = settings->queen_url, .token = settings->queen_token, .ca_file = settings->queen_ca_file};

    return queen_client_create(bucket->reactor, &client, error);
}

static int open_and_recover(const char *file, const char *queue, bool yes)
{
    static const char *const names[] = {[COMMITTED] = "committed", [INTENT] = "intent", [LEASE] = "lease"};
    struct bucket bucket;
    struct error error;
    int code = bucket_open(&bucket, file, &error);

    if (code != 0) {
        return command_fail(code, "%s", error.message);
    }
    struct recovering recovering = {.queue = queue, .bucket = &bucket};
    lake_escape_name((struct name){queue, strlen(queue)}, recovering.escaped);
    for (int i = COMMITTED; i <= LEASE; i++) {
        recovering.keys[i] = document_key(bucket.settings.sink, recovering.escaped, names[i]);
    }
    recovering.queen = open_queen(&bucket, &error);
    if (recovering.queen != NULL) {
        code = recover(&recovering, yes);
        queen_client_destroy(recovering.queen);
    } else {
        code = command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    recovery_free(&recovering.recovery);
    for (int i = COMMITTED; i <= LEASE; i++) {
        free(recovering.keys[i]);
    }
    bucket_close(&bucket);
    return code;
}

enum { OPTION_YES = COMMAND_FILE + 1 };

static int run_recover(int argc, char **argv)
{
    struct arguments arguments;
    struct error error;

    output_begin();
    if (arguments_parse(&command_recover, argc, argv, &arguments, &error) != 0) {
        return command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    const char *queue = arguments.words[0];
    free(arguments.words);
    if (arguments_queue(queue, &error) != 0) {
        return command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    return output_end(open_and_recover(arguments.values[COMMAND_FILE], queue, arguments.values[OPTION_YES] != NULL));
}

static const struct command_option options[] = {
    [COMMAND_FILE] = COMMAND_FILE_OPTION,
    [OPTION_YES] = {"--yes", NULL, "write the pointer; without it, it is only shown"},
    {NULL, NULL, NULL},
};

static const struct command_exit exits[] = {
    {EXIT_SUCCESS, "the pointer has been shown, or with --yes written"},
    {COMMAND_FAULT, "refused: there is a pointer, somebody holds the lease, the lake isn't whole, or an intent "
                    "disagrees with it; nothing was written"},
    {COMMAND_CONFIGURATION, "arguments or settings are wrong"},
    {COMMAND_UNREACHABLE, "the broker or the bucket can't be reached"},
    {0, NULL},
};

static const struct command_example examples[] = {
    {"queen-s3 recover orders", "proves the lake, and shows the pointer that would be written"},
    {"queen-s3 recover orders --yes", "writes it"},
    {NULL, NULL},
};

const struct command command_recover = {
    .name = "recover",
    .words = "QUEUE",
    .summary = "rebuild the pointer of a queue that the broker has lost",
    .help =
        "A sink that finds a lake and no pointer to its last window stops with the queue, since numbering it from 1 "
        "again would write over what is there. This proves the lake as `verify` does, and makes the pointer of the "
        "last manifest. The sink goes on from it: positions come from a checkpoint or are sought in the log by time, "
        "whatever QUEEN_S3_START says, so nothing is written twice and nothing is left out.\n"
        "A pointer is replaced only where it can't be right: it can't be read, or the intent beside it or a manifest "
        "behind it shows that it was set back. Any other is left alone. The queue must not be in anybody's hands: the lease must be free, and "
        "is held while the pointer is written.\n"
        "An object that no manifest names is a fault: where the intent was lost too, it is what a sink was just "
        "writing. Once it is deleted, the sink writes those records anew.\n"
        "Needs the settings that name the bucket, its keys, QUEEN_URL, QUEEN_TOKEN where the broker asks for one, "
        "and QUEEN_S3_SINK.",
    .options = options,
    .exits = exits,
    .examples = examples,
    .run = run_recover,
};
