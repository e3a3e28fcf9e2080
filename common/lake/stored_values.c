/* Decoding a page's values: stored_values.h. */
#include "common/lake/stored_values.h"

#include <stdlib.h>
#include <string.h>

#include "common/lake/parquet_format.h"

/* PLAIN: four bytes of length before a text. */
static const char *take_text(const uint8_t **at, const uint8_t *end, struct name *value)
{
    size_t left = (size_t)(end - *at);

    if (left < 4) {
        return "values end early";
    }
    size_t size = stored_load32(*at);
    if (size > left - 4) {
        return "a text longer than its page";
    }
    *value = (struct name){(const char *)*at + 4, size};
    *at += 4 + size;
    return NULL;
}

/* ---- dictionaries ---- */

const char *stored_dictionary_read(struct stored_dictionary *dictionary, bool integers, const uint8_t *bytes,
                                   size_t size, uint32_t count, bool *no_memory)
{
    const uint8_t *at = bytes;
    const char *why = NULL;

    *dictionary = (struct stored_dictionary){.bytes = bytes, .count = count};
    if (integers) {
        return size / 8 == count && size % 8 == 0 ? NULL : "a dictionary of another size than its values have";
    }
    if (count > size / 4) {
        return "a dictionary smaller than its values";
    }
    dictionary->texts = malloc((count + (size_t)1) * sizeof *dictionary->texts);
    if (dictionary->texts == NULL) {
        *no_memory = true;
        return "out of memory for a dictionary";
    }
    for (uint32_t i = 0; i < count && why == NULL; i++) {
        why = take_text(&at, bytes + size, &dictionary->texts[i]);
    }
    return why != NULL ? why : at == bytes + size ? NULL : "bytes behind a dictionary's last value";
}

void stored_dictionary_free(struct stored_dictionary *dictionary)
{
    free(dictionary->texts);
    *dictionary = (struct stored_dictionary){0};
}

/* ---- the beginning of a page ---- */

static const char *begin_indices(struct stored_values *values)
{
    if (values->dictionary == NULL) {
        return "indices without a dictionary";
    }
    /* No value, and some writers leave out the width too. */
    if (values->at == values->end) {
        return values->left == 0 ? NULL : "values end early";
    }
    unsigned width = *values->at++;
    if (!bit_runs_begin(&values->indices, values->at, (size_t)(values->end - values->at), width)) {
        return "dictionary indices of more than 32 bits";
    }
    return NULL;
}

/* Deltas from the cursor on, which goes behind them: what follows begins there. */
static const char *begin_deltas(struct stored_values *values, struct deltas *deltas)
{
    /* No value, and some writers leave out the header too. */
    if (values->left == 0 && values->at == values->end) {
        return NULL;
    }
    if (!deltas_begin(deltas, values->at, (size_t)(values->end - values->at))) {
        return "no DELTA_BINARY_PACKED values";
    }
    if (deltas->total != values->left) {
        return "deltas of another number than the page has values";
    }
    values->at = deltas_end(*deltas);
    return values->at != NULL ? NULL : "deltas end early";
}

static const char *begin_prefixes(struct stored_values *values)
{
    const char *why = begin_deltas(values, &values->prefixes);

    values->text_size = 0;
    return why != NULL ? why : begin_deltas(values, &values->deltas);
}

const char *stored_values_begin(struct stored_values *values, int32_t encoding, bool integers, const uint8_t *bytes,
                                size_t size, uint64_t count, const struct stored_dictionary *dictionary)
{
    const char *why = "an encoding that its column's type doesn't have, or that isn't known";

    values->dictionary = dictionary;
    values->encoding = encoding == STORED_PLAIN_DICTIONARY ? STORED_RLE_DICTIONARY : encoding;
    values->left = count;
    values->at = bytes;
    values->end = bytes + size;
    switch (values->encoding) {
    case STORED_PLAIN: why = NULL; break;
    case STORED_RLE_DICTIONARY: why = begin_indices(values); break;
    case STORED_DELTA_BINARY_PACKED: why = integers ? begin_deltas(values, &values->deltas) : why; break;
    case STORED_DELTA_LENGTH_BYTE_ARRAY: why = integers ? why : begin_deltas(values, &values->deltas); break;
    case STORED_DELTA_BYTE_ARRAY: why = integers ? why : begin_prefixes(values); break;
    default: break;
    }
    if (why != NULL) {
        values->left = 0;
        values->at = values->end;
    }
    return why;
}

/* ---- values ---- */

static const char *take_index(struct stored_values *values, uint32_t *index)
{
    if (!bit_runs_next(&values->indices, index)) {
        return "dictionary indices end early";
    }
    return *index < values->dictionary->count ? NULL : "an index beyond its dictionary";
}

const char *stored_values_integer(struct stored_values *values, int64_t *value)
{
    const char *why = NULL;
    uint32_t index = 0;

    if (values->left == 0) {
        return "values end early";
    }
    values->left--;
    if (values->encoding == STORED_DELTA_BINARY_PACKED) {
        return deltas_next(&values->deltas, value) ? NULL : "deltas end early";
    }
    if (values->encoding == STORED_RLE_DICTIONARY) {
        why = take_index(values, &index);
        if (why == NULL) {
            *value = (int64_t)stored_load64(values->dictionary->bytes + (size_t)index * 8);
        }
        return why;
    }
    if (values->end - values->at < 8) {
        return "values end early";
    }
    *value = (int64_t)stored_load64(values->at);
    values->at += 8;
    return NULL;
}

/* The next `size` bytes of what follows the lengths. */
static const char *take_piece(struct stored_values *values, struct name *piece)
{
    int64_t size = 0;

    if (!deltas_next(&values->deltas, &size)) {
        return "lengths end early";
    }
    if (size < 0 || (uint64_t)size > (uint64_t)(values->end - values->at)) {
        return "a text longer than its page";
    }
    *piece = (struct name){(const char *)values->at, (size_t)size};
    values->at += size;
    return NULL;
}

/* Keeps as much of the last text as this one shares, and puts the rest behind it. What is put there in a page is no more
 * than the page is large, so neither is the text. */
static const char *take_shared(struct stored_values *values, struct name *value)
{
    struct name suffix = {"", 0};
    int64_t prefix = 0;
    const char *why = take_piece(values, &suffix);

    if (why != NULL) {
        return why;
    }
    if (!deltas_next(&values->prefixes, &prefix) || prefix < 0 || (uint64_t)prefix > values->text_size) {
        return "a text that shares more than the one before has";
    }
    size_t size = (size_t)prefix + suffix.size;
    if (size > values->text_capacity) {
        size_t wanted = values->text_capacity * 2 > size ? values->text_capacity * 2 : size;
        char *text = realloc(values->text, wanted);
        if (text == NULL) {
            values->no_memory = true;
            return "out of memory for a text";
        }
        values->text = text;
        values->text_capacity = wanted;
    }
    if (suffix.size > 0) {
        memcpy(values->text + prefix, suffix.bytes, suffix.size);
    }
    values->text_size = size;
    *value = (struct name){size > 0 ? values->text : "", size};
    return NULL;
}

const char *stored_values_text(struct stored_values *values, struct name *value)
{
    const char *why = NULL;
    uint32_t index = 0;

    if (values->left == 0) {
        return "values end early";
    }
    values->left--;
    switch (values->encoding) {
    case STORED_RLE_DICTIONARY:
        why = take_index(values, &index);
        if (why == NULL) {
            *value = values->dictionary->texts[index];
        }
        return why;
    case STORED_DELTA_LENGTH_BYTE_ARRAY: return take_piece(values, value);
    case STORED_DELTA_BYTE_ARRAY: return take_shared(values, value);
    default: return take_text(&values->at, values->end, value);
    }
}

const char *stored_values_finish(const struct stored_values *values)
{
    /* Runs of indices are padded to eight values. */
    bool is_padded = values->encoding == STORED_RLE_DICTIONARY;

    return is_padded || values->at == values->end ? NULL : "bytes behind a page's last value";
}

void stored_values_free(struct stored_values *values)
{
    free(values->text);
    *values = (struct stored_values){0};
}
