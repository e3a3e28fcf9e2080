/*
 * Patterns of topics. librdkafka matches with regcomp(), so what is accepted here is what it will take; of what else
 * people write, \d is common enough to be said in other words, and the rest is refused rather than matched as a letter.
 */
#include <regex.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "worker/connector/definition_internal.h"

static int refuse_pattern(const char *pattern, const char *why, struct error *error)
{
    return error_set(error, QS_ERROR_INPUT, "pattern = %.200s: expected a POSIX extended regular expression: %s",
                     pattern, why);
}

/* Behind the bracket that `at` opens: its first member may be `]`. */
static const char *skip_bracket(const char *at)
{
    at += at[1] == '^' ? 2 : 1;
    at += *at == ']' ? 1 : 0;
    while (*at != '\0' && *at != ']' && *at != '\\') {
        at++;
    }
    return *at == ']' ? at + 1 : at;
}

/* Adds the escape that stands at `at`, which is two bytes. False: it means something else to whoever wrote it. */
static bool add_escape(struct byte_buffer *out, const char *at)
{
    if (at[1] == 'd' || at[1] == 'D') {
        byte_buffer_add_text(out, at[1] == 'd' ? "[0-9]" : "[^0-9]");
        return true;
    }
    bool letter = (at[1] >= 'a' && at[1] <= 'z') || (at[1] >= 'A' && at[1] <= 'Z') || (at[1] >= '0' && at[1] <= '9');
    if (at[1] == '\0' || (letter && strchr("wWsSbB", at[1]) == NULL)) {
        return false;
    }
    byte_buffer_add(out, at, 2);
    return true;
}

static int translate(const char *pattern, struct byte_buffer *out, struct error *error)
{
    const char *at = pattern + (pattern[0] == '^' ? 1 : 0);

    byte_buffer_add_text(out, "^(");
    while (*at != '\0') {
        if (*at == '\\') {
            if (!add_escape(out, at)) {
                return refuse_pattern(pattern, "an escape that it does not have", error);
            }
            at += 2;
        } else if (*at == '[') {
            const char *end = skip_bracket(at);
            if (end[-1] != ']' || end == at + 1) {
                return refuse_pattern(pattern, "a bracket without its end, or with an escape in it", error);
            }
            byte_buffer_add(out, at, (size_t)(end - at));
            at = end;
        } else {
            byte_buffer_add(out, at, 1);
            at++;
        }
    }
    byte_buffer_add_text(out, ")");
    return 0;
}

char *definition_pattern(const char *pattern, struct error *error)
{
    struct byte_buffer out = {0};
    regex_t compiled;
    char why[128];

    if (translate(pattern, &out, error) != 0) {
        byte_buffer_free(&out);
        return NULL;
    }
    int status = regcomp(&compiled, out.bytes, REG_EXTENDED | REG_NOSUB);
    if (status != 0) {
        (void)regerror(status, &compiled, why, sizeof why);
        (void)refuse_pattern(pattern, why, error);
        byte_buffer_free(&out);
        return NULL;
    }
    regfree(&compiled);
    return byte_buffer_take(&out);
}
