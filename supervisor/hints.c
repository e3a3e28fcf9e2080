/* See hints.h. */
#include "supervisor/hints.h"

#include <stdlib.h>

#include "common/memory.h"

/* Below it the broker's largest answer doesn't fit (spec 3.1). */
#define ROOMY_MEMORY_BYTES ((int64_t)256 << 20)

struct telling {
    hints_line *tell;
};

static void tell_unknown(void *argument, const char *name, const char *meant)
{
    const struct telling *telling = argument;
    char *line =
        memory_format("%s: unknown setting in the environment, ignored%s%s%s", name,
                      meant != NULL ? "; did you mean " : "", meant != NULL ? meant : "", meant != NULL ? "?" : "");

    telling->tell(line);
    free(line);
}

void hints_tell(const struct settings *settings, hints_line *tell)
{
    struct telling telling = {tell};

    settings_tell_unknown(tell_unknown, &telling);
    if (settings != NULL && settings->memory_bytes < ROOMY_MEMORY_BYTES) {
        char *line =
            memory_format("QUEEN_S3_MEMORY_MB=%lld: below 256 the broker's largest answer does not fit, and the "
                          "budget is not held when it comes",
                          (long long)(settings->memory_bytes >> 20));
        tell(line);
        free(line);
    }
}
