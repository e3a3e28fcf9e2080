/* Which files there are, which definition of a key counts, and what is wrong with the others: definition.h. */
#include "worker/connector/definition.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/memory.h"
#include "common/small_file.h"
#include "worker/connector/definition_internal.h"

/* A file that could be read as TOML and has a key. */
struct candidate {
    char *source;
    const char *key; /* in root */
    int64_t version;
    struct toml_value *root;
};

struct loading {
    struct definitions *definitions;
    char *const *environment;
    struct candidate *list;
    size_t count;
    size_t capacity;
    size_t fault_capacity;
};

/* "orders.toml" of "/etc/connectors/orders.toml" is enough to know it by. */
static void add_fault(struct loading *loading, const char *source, const char *key, const struct error *error)
{
    struct definitions *definitions = loading->definitions;

    definitions->faults = memory_grow(definitions->faults, &loading->fault_capacity, definitions->fault_count + 1,
                                      sizeof *definitions->faults);
    definitions->faults[definitions->fault_count++] =
        (struct definition_fault){memory_format("%s", source), key == NULL ? NULL : memory_format("%s", key),
                                  memory_format("%s: %s", source, error->message)};
}

static char *read_whole(const char *path, size_t *size, struct error *error)
{
    char *bytes = memory_new(TOML_SIZE_MAX + 2, 1);
    ssize_t filled = small_file_read(path, bytes, TOML_SIZE_MAX + 1, error);

    if (filled < 0) {
        error_prefix(error, "cannot be read");
        free(bytes);
        return NULL;
    }
    *size = (size_t)filled;
    return bytes;
}

static void load_file(struct loading *loading, const char *path)
{
    struct error error;
    size_t size = 0;
    char *bytes = read_whole(path, &size, &error);
    struct toml_value *root = bytes == NULL ? NULL : toml_parse(bytes, size, &error);

    free(bytes);
    if (root == NULL || definition_check_key(root, &error) != 0) {
        add_fault(loading, path, NULL, &error);
        toml_free(root);
        return;
    }
    const struct toml_value *version = toml_find(root, "version");
    loading->list = memory_grow(loading->list, &loading->capacity, loading->count + 1, sizeof *loading->list);
    loading->list[loading->count++] =
        (struct candidate){memory_format("%s", path), toml_find(root, "key")->text,
                           version != NULL && version->type == TOML_INTEGER ? version->integer : -1, root};
}

static int is_definition(const struct dirent *entry)
{
    size_t size = strlen(entry->d_name);

    return entry->d_name[0] != '.' && size > 5 && strcmp(entry->d_name + size - 5, ".toml") == 0;
}

/* What a folder has is nobody's wish: a pipe in it could be waited at for ever. */
static void load_entry(struct loading *loading, const char *path)
{
    struct stat status;
    struct error error;

    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        (void)error_set(&error, QS_ERROR_INPUT, "not a file");
        add_fault(loading, path, NULL, &error);
        return;
    }
    load_file(loading, path);
}

static int load_folder(struct loading *loading, const char *path, struct error *error)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_definition, alphasort);

    if (count < 0) {
        return error_set_errno(error, "%.200s: the folder can't be read", path);
    }
    for (int i = 0; i < count; i++) {
        char *file = memory_format("%s/%s", path, entries[i]->d_name);
        load_entry(loading, file);
        free(file);
        free(entries[i]);
    }
    free(entries);
    return 0;
}

static int load_path(struct loading *loading, const char *path, struct error *error)
{
    struct stat status;

    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        return load_folder(loading, path, error);
    }
    load_file(loading, path);
    return 0;
}

/* By key, the highest version first. */
static int by_key(const void *left, const void *right)
{
    const struct candidate *a = left;
    const struct candidate *b = right;
    int order = strcmp(a->key, b->key);

    return order != 0 ? order : (a->version < b->version) - (a->version > b->version);
}

static void take(struct loading *loading, const char *const *keys, size_t own, struct candidate *candidate)
{
    struct definitions *definitions = loading->definitions;
    struct definition *definition = &definitions->list[definitions->count];
    struct error error;

    if (definition_override(candidate->root, keys, loading->count, own, loading->environment, &error) != 0 ||
        definition_read(candidate->root, definition, &error) != 0) {
        add_fault(loading, candidate->source, candidate->key, &error);
    } else if (!toml_find(candidate->root, "enabled")->boolean) {
        definition_free(definition);
        definitions->disabled++;
    } else {
        definition->source = memory_format("%s", candidate->source);
        definitions->count++;
    }
}

static void choose(struct loading *loading)
{
    const char **keys = memory_new(loading->count + 1, sizeof *keys);

    qsort(loading->list, loading->count, sizeof *loading->list, by_key);
    for (size_t i = 0; i < loading->count; i++) {
        keys[i] = loading->list[i].key;
    }
    loading->definitions->list = memory_new(loading->count + 1, sizeof *loading->definitions->list);
    for (size_t i = 0; i < loading->count; i++) {
        struct candidate *candidate = &loading->list[i];
        struct error error;

        if (i > 0 && strcmp(keys[i - 1], keys[i]) == 0) {
            continue; /* a lower version */
        }
        if (i + 1 < loading->count && strcmp(keys[i + 1], keys[i]) == 0 &&
            loading->list[i + 1].version == candidate->version) {
            (void)error_set(&error, QS_ERROR_INPUT, "version = %lld: the same key and version as in %.200s",
                            (long long)candidate->version, loading->list[i + 1].source);
            add_fault(loading, candidate->source, candidate->key, &error);
            continue;
        }
        take(loading, keys, i, candidate);
    }
    free(keys);
}

int definitions_load(const char *const *paths, size_t count, char *const *environment, struct definitions *definitions,
                     struct error *error)
{
    struct loading loading = {.definitions = definitions, .environment = environment};
    int status = 0;

    *definitions = (struct definitions){0};
    for (size_t i = 0; i < count && status == 0; i++) {
        status = load_path(&loading, paths[i], error);
    }
    if (loading.count > 0) {
        choose(&loading);
    }
    for (size_t i = 0; i < loading.count; i++) {
        free(loading.list[i].source);
        toml_free(loading.list[i].root);
    }
    free(loading.list);
    return status;
}

void definitions_free(struct definitions *definitions)
{
    for (size_t i = 0; i < definitions->count; i++) {
        definition_free(&definitions->list[i]);
    }
    for (size_t i = 0; i < definitions->fault_count; i++) {
        free(definitions->faults[i].source);
        free(definitions->faults[i].key);
        free(definitions->faults[i].message);
    }
    free(definitions->list);
    free(definitions->faults);
    *definitions = (struct definitions){0};
}
