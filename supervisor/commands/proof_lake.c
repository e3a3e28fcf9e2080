/* A whole lake, from its manifests to what lies beside them: proof.h. */
#include <inttypes.h>

#include "supervisor/commands/output.h"
#include "supervisor/commands/progress.h"
#include "supervisor/commands/proof.h"

static int look_at_window(struct proof *proof, const struct manifest *manifest)
{
    int code = proof->deep ? proof_records(proof, manifest) : proof_objects(proof, manifest);

    if (code == 0 && proof->each != NULL) {
        code = proof->each(proof, manifest);
    }
    return code != 0 || output_closed() ? 1 : 0;
}

int proof_lake(struct proof *proof, proof_each *each)
{
    proof->each = each;
    int code = proof_manifests(proof, look_at_window);
    if (code == 0) {
        code = proof_objects_end(proof);
    }
    if (code == 0) {
        code = proof_strays(proof);
    }
    progress_clear();
    if (code == 0 && proof->windows == 0) {
        const struct settings *settings = &proof->bucket->settings;
        proof_fault(proof, proof->queue, "there is no window in bucket %s%s%s: expected one", settings->bucket,
                    settings->prefix[0] != '\0' ? " below " : "", settings->prefix);
    }
    return code;
}

void proof_print_verdict(const struct proof *proof)
{
    char start[CLOCK_TEXT_SIZE];
    char end[CLOCK_TEXT_SIZE];

    clock_format_broker(proof->start, start);
    clock_format_broker(proof->end, end);
    if (proof->faults > 0) {
        output_line("%s: %" PRIu64 " %s in %" PRIu64 " windows", proof->queue, proof->faults,
                    proof->faults == 1 ? "fault" : "faults", proof->windows);
        return;
    }
    output_line("%s: %s: %" PRIu64 " windows, %" PRId64 " to %" PRId64 ", from %s to %s, %" PRIu64
                " records in %" PRIu64 " objects of %" PRIu64 " bytes, %" PRIu64 " lost",
                proof->queue, proof->deep ? "holds, every record of it" : "holds", proof->windows, proof->first_k,
                proof->last_k, start, end, proof->records, proof->objects, proof->bytes, proof->lost);
}
