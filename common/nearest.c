/* Names a slip away from each other: nearest.h. */
#include "common/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* "_MB" or "_MS" forgotten is the slip that a list of settings with units asks for. */
#define UNIT_BYTES 3

static bool same_letter(char left, char right)
{
    return tolower((unsigned char)left) == tolower((unsigned char)right);
}

static size_t least(size_t left, size_t right)
{
    return left < right ? left : right;
}

/* The three last rows of the table of distances between starts of the two names are all that a cell looks at. */
size_t nearest_distance(const char *left, const char *right)
{
    size_t rows[3][NEAREST_BYTES + 1] = {{0}};
    size_t left_size = strnlen(left, NEAREST_BYTES);
    size_t right_size = strnlen(right, NEAREST_BYTES);

    for (size_t j = 0; j <= right_size; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= left_size; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= right_size; j++) {
            size_t replaced = above[j - 1] + (same_letter(left[i - 1], right[j - 1]) ? 0 : 1);
            row[j] = least(replaced, least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && same_letter(left[i - 1], right[j - 2]) && same_letter(left[i - 2], right[j - 1])) {
                row[j] = least(row[j], two_above[j - 2] + 1);
            }
        }
    }
    return rows[left_size % 3][right_size];
}

/* The bytes of the whole words that both begin with, each with the mark behind it. */
static size_t shared_words(const char *left, const char *right)
{
    size_t shared = 0;

    for (size_t i = 0; left[i] != '\0' && same_letter(left[i], right[i]); i++) {
        if (!isalnum((unsigned char)left[i])) {
            shared = i + 1;
        }
    }
    return shared;
}

static bool lacks_unit(const char *text, const char *name, size_t distance)
{
    size_t size = strlen(text);

    return distance == UNIT_BYTES && strlen(name) == size + UNIT_BYTES && name[size] == '_';
}

/* One slip in three letters. Words that both begin with prove nothing: they don't count, or all that begins with
 * QUEEN_S3_ would be near to each other. */
static bool is_near(const char *text, const char *name, size_t distance)
{
    size_t shared = shared_words(text, name);
    size_t left = strlen(text + shared);
    size_t right = strlen(name + shared);
    size_t longer = left > right ? left : right;
    size_t most = longer >= 6 ? longer / 3 : 1;

    return (distance <= most && distance < longer) || lacks_unit(text, name, distance);
}

void nearest_begin(struct nearest *nearest, const char *text)
{
    *nearest = (struct nearest){.text = text};
}

void nearest_offer(struct nearest *nearest, const char *name)
{
    if (strlen(nearest->text) > NEAREST_BYTES || strlen(name) > NEAREST_BYTES) {
        return;
    }
    size_t distance = nearest_distance(nearest->text, name);
    if (is_near(nearest->text, name, distance) && (nearest->name == NULL || distance < nearest->distance)) {
        nearest->name = name;
        nearest->distance = distance;
    }
}

const char *nearest_find(const char *text, const char *const *names, size_t count)
{
    struct nearest nearest;

    nearest_begin(&nearest, text);
    for (size_t i = 0; i < count; i++) {
        nearest_offer(&nearest, names[i]);
    }
    return nearest.name;
}
