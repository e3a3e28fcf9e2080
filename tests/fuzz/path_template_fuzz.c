/*
 * Any template over any topic: what is checked renders or says why, never beyond its room, and a topic adds no slash.
 * The bytes up to the first NUL are the template, the rest is the topic.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "worker/connector/path_template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool right)
{
    if (!right) {
        abort();
    }
}

static size_t count_slashes(const char *text)
{
    size_t count = 0;

    for (; *text != '\0'; text++) {
        count += *text == '/' ? 1 : 0;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t length = strnlen((const char *)data, size);
    char *template = malloc(length + 1);
    char *topic = malloc(size - length + 1);
    char out[SINK_KEY_MAX + 1];
    struct error error;

    expect(template != NULL && topic != NULL);
    memcpy(template, data, length);
    template[length] = '\0';
    struct sink_slice name = {topic, size > length ? size - length - 1 : 0};
    if (name.size > 0) {
        memcpy(topic, data + length + 1, name.size);
    }
    if (utf8_is_valid(topic, name.size) && path_template_check(template, &error) == 0) {
        static const uint64_t times[] = {0, UINT64_C(1788470104118), SINK_TIMESTAMP_MAX, UINT64_MAX};
        for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
            int code = path_template_render(template, name, (int32_t)(size % 7) - 3, times[i], out, sizeof out, &error);
            expect(strnlen(out, sizeof out) < sizeof out);
            expect(code != 0 || count_slashes(out) == count_slashes(template));
            expect(code != QS_ERROR_INPUT || error.message[0] != '\0');
        }
    }
    free(template);
    free(topic);
    return 0;
}
