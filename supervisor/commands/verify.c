/*
 * `queen-s3 verify QUEUE...`: proves a lake, or says what doesn't hold (spec 4.4). What is proved stands in proof.h.
 */
#include <stdlib.h>
#include <string.h>

#include "supervisor/commands/arguments.h"
#include "supervisor/commands/commands.h"
#include "supervisor/commands/output.h"
#include "supervisor/commands/proof.h"

static int verify_queue(struct bucket *bucket, const char *queue, bool deep)
{
    struct proof proof;

    proof_begin(&proof, bucket, queue, deep);
    int code = proof_lake(&proof, NULL);
    if (code != 0 && proof.failure.code != QS_OK) {
        code = command_fail(COMMAND_UNREACHABLE, "%s: %s", queue, proof.failure.message);
    } else if (code != 0) {
        code = COMMAND_FAULT; /* nobody reads any more, so not all was proved */
    } else {
        proof_print_verdict(&proof);
        code = proof.faults > 0 ? COMMAND_FAULT : EXIT_SUCCESS;
    }
    proof_end(&proof);
    return code;
}

static int verify_all(const struct arguments *arguments, bool deep)
{
    struct bucket bucket;
    struct error error;
    int code = bucket_open(&bucket, arguments->values[COMMAND_FILE], &error);

    if (code != 0) {
        return command_fail(code, "%s", error.message);
    }
    for (size_t i = 0; i < arguments->word_count && code != COMMAND_UNREACHABLE; i++) {
        int one = verify_queue(&bucket, arguments->words[i], deep);
        code = one > code ? one : code;
    }
    bucket_close(&bucket);
    return code;
}

enum { OPTION_DEEP = COMMAND_FILE + 1 };

static int run_verify(int argc, char **argv)
{
    struct arguments arguments;
    struct error error;
    int code = 0;

    output_begin();
    if (arguments_parse(&command_verify, argc, argv, &arguments, &error) != 0) {
        return command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    for (size_t i = 0; i < arguments.word_count && code == 0; i++) {
        code = arguments_queue(arguments.words[i], &error);
    }
    code = code != 0 ? command_fail(COMMAND_CONFIGURATION, "%s", error.message)
                     : verify_all(&arguments, arguments.values[OPTION_DEEP] != NULL);
    free(arguments.words);
    return output_end(code);
}

static const struct command_option options[] = {
    [COMMAND_FILE] = COMMAND_FILE_OPTION,
    [OPTION_DEEP] = {"--deep", NULL,
                     "read every object too: its sha256, the form of each record, their number, order and bounds, no "
                     "record twice, first and last ts, partitions, and in per-partition layout the offsets"},
    {NULL, NULL, NULL},
};

static const struct command_exit exits[] = {
    {EXIT_SUCCESS, "all of it holds"},
    {COMMAND_FAULT, "something doesn't hold, each fault is a line; or a reader went away before all was proved"},
    {COMMAND_CONFIGURATION, "arguments or settings are wrong"},
    {COMMAND_UNREACHABLE, "the bucket can't be reached"},
    {0, NULL},
};

static const struct command_example examples[] = {
    {"queen-s3 verify orders clicks", "proves two queues from their manifests and a list of their objects"},
    {"queen-s3 verify orders --deep && echo whole", "reads every record, and says so where all is well"},
    {NULL, NULL},
};

const struct command command_verify = {
    .name = "verify",
    .words = "QUEUE...",
    .summary = "prove that the lake of a queue is whole",
    .help = "From the bucket alone: that the manifests have no hole in k, windows tile without overlap and keep to the "
            "alignment, sums add up, every object is there with its size, and nothing lies among them that no "
            "manifest names.\n"
            "Each fault is a line `fault: object or manifest: what was found: expected what`, each range that was "
            "lost to retention a line that begins with `lost:`; the last line of a queue is the verdict. Progress is "
            "shown on a terminal.\n"
            "Needs the settings that name the bucket, and its keys; no broker. QUEEN_S3_ALIGN=none says that windows "
            "needn't keep to the hour.",
    .options = options,
    .exits = exits,
    .examples = examples,
    .run = run_verify,
};
