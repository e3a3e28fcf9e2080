/*
 * A page of keys out of folders, in the order in which S3 lists them: by the bytes of the whole key. A folder's entries
 * therefore sort as "name/", so that `a-b` comes before what is in `a` (0x2d before 0x2f).
 *
 * A folder can hold a million files, and a page is a thousand keys. So a folder's names are not all kept: those that
 * come after the last key of the page before are, and whenever CANDIDATES are reached they are sorted and cut to as many
 * as a page can use. Memory is bounded; the price is that each page reads its folder again.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file_objects.h"
#include "common/memory.h"

#define KEEP       (FILE_PAGE_SIZE + 1) /* one more than a page: whether there is another */
#define CANDIDATES (4 * KEEP)

/* An entry that can lead to keys: a file, or a folder, whose key ends with a slash. */
struct candidate {
    char *key;
    uint64_t size;
};

struct level {
    const char *folder_key; /* owned; "" or ending with a slash */
    struct candidate *candidates;
    size_t count;
    size_t next;
    bool cut; /* some were dropped at the end */
};

struct walk {
    const struct file_bucket *bucket;
    const char *prefix;
    char *after; /* owned; "": from the start */
    struct file_page *page;
    struct level *levels;
    size_t depth;
    size_t capacity;
    struct error *error;
};

static bool is_folder_key(const char *key)
{
    size_t size = strlen(key);

    return size > 0 && key[size - 1] == '/';
}

static int compare_candidates(const void *left, const void *right)
{
    return strcmp(((const struct candidate *)left)->key, ((const struct candidate *)right)->key);
}

static void drop_candidates(struct level *level, size_t from)
{
    for (size_t i = from; i < level->count; i++) {
        free(level->candidates[i].key);
    }
    level->count = from < level->count ? from : level->count;
}

static void sort_and_cut(struct level *level)
{
    qsort(level->candidates, level->count, sizeof *level->candidates, compare_candidates);
    if (level->count > KEEP) {
        drop_candidates(level, KEEP);
        level->cut = true;
    }
}

/* Whether keys that match can be at or below this entry: it is within the prefix or on the way to it, and isn't wholly
 * at or before `after`. */
static bool is_wanted(const struct walk *walk, const char *key)
{
    size_t key_size = strlen(key);
    size_t prefix_size = strlen(walk->prefix);
    bool folder = is_folder_key(key);
    size_t common = key_size < prefix_size ? key_size : prefix_size;

    if (strncmp(key, walk->prefix, common) != 0 || (!folder && key_size < prefix_size)) {
        return false;
    }
    return strcmp(key, walk->after) > 0 || (folder && strncmp(walk->after, key, key_size) == 0);
}

/* "<folder key><name>", with a slash at the end for a folder; NULL where the entry is neither a file nor a folder, or
 * has just gone. */
static char *entry_key(const struct level *level, int folder, const char *name, uint64_t *size)
{
    struct stat status;

    if (fstatat(folder, name, &status, 0) != 0 || !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) {
        return NULL;
    }
    *size = (uint64_t)status.st_size;
    return memory_format("%s%s%s", level->folder_key, name, S_ISDIR(status.st_mode) ? "/" : "");
}

static bool is_hidden(const struct level *level, const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
           (level->folder_key[0] == '\0' && strcmp(name, ".tmp") == 0);
}

static void read_entry(const struct walk *walk, struct level *level, int folder, const char *name)
{
    uint64_t size = 0;
    char *key = is_hidden(level, name) ? NULL : entry_key(level, folder, name, &size);

    if (key == NULL || !is_wanted(walk, key)) {
        free(key);
        return;
    }
    level->candidates[level->count++] = (struct candidate){key, size};
    if (level->count == CANDIDATES) {
        sort_and_cut(level);
    }
}

/* Fills the level anew. A folder that has gone is an empty one. */
static int read_level(struct walk *walk, struct level *level)
{
    char *path = file_join(walk->bucket->folder, level->folder_key);
    DIR *folder = opendir(path);
    int code = 0;
    drop_candidates(level, 0);
    level->next = 0;
    level->cut = false;
    if (folder == NULL) {
        code = errno == ENOENT || errno == ENOTDIR ? 0 : file_error(walk->error, "list", path);
    } else {
        for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
            read_entry(walk, level, dirfd(folder), entry->d_name);
        }
        closedir(folder);
    }
    sort_and_cut(level);
    free(path);
    return code;
}

/* Takes folder_key over. */
static int push_level(struct walk *walk, const char *folder_key)
{
    walk->levels = memory_grow(walk->levels, &walk->capacity, walk->depth + 1, sizeof *walk->levels);
    struct level *level = &walk->levels[walk->depth++];
    *level = (struct level){.folder_key = folder_key, .candidates = memory_new(CANDIDATES, sizeof(struct candidate))};
    return read_level(walk, level);
}

static void pop_level(struct walk *walk)
{
    struct level *level = &walk->levels[--walk->depth];

    drop_candidates(level, 0);
    free(level->candidates);
    free((char *)(uintptr_t)level->folder_key);
}

/* Takes the key over. */
static void add_to_page(struct walk *walk, struct candidate *candidate)
{
    if (walk->page->count == FILE_PAGE_SIZE) {
        walk->page->more = true;
        free(candidate->key);
    } else {
        walk->page->objects[walk->page->count++] = (struct listed_object){candidate->key, candidate->size};
    }
    candidate->key = NULL;
}

/* Folders without a key in them can use up the candidates that were kept: what was cut is then read, from where the
 * last one ends. After a folder "a/" that is all that sorts after "a/\xff", since no name is as high. */
static int read_on(struct walk *walk, struct level *level)
{
    const char *last = level->candidates[level->count - 1].key;
    const char *page_last = walk->page->count > 0 ? walk->page->objects[walk->page->count - 1].key : "";
    const char *from = last != NULL ? last : page_last;
    char *after = memory_format("%s%s", from, is_folder_key(from) ? "\xff\xff" : "");

    free(walk->after);
    walk->after = after;
    return read_level(walk, level);
}

static int step(struct walk *walk)
{
    struct level *level = &walk->levels[walk->depth - 1];

    if (level->next == level->count) {
        if (level->cut) {
            return read_on(walk, level);
        }
        pop_level(walk);
        return 0;
    }
    struct candidate *candidate = &level->candidates[level->next++];
    if (!is_folder_key(candidate->key)) {
        add_to_page(walk, candidate);
        return 0;
    }
    return push_level(walk, memory_copy_text(candidate->key));
}

/* Where the walk begins: the folder that the prefix names, up to its last slash. */
static int begin(struct walk *walk)
{
    const char *slash = strrchr(walk->prefix, '/');

    return push_level(walk, memory_copy(walk->prefix, slash != NULL ? (size_t)(slash - walk->prefix) + 1 : 0));
}

/* A prefix leads into the bucket and nowhere else: no empty part, none that is `.` or `..`, before its last slash. */
static int check_prefix(const char *prefix, struct error *error)
{
    for (const char *part = prefix, *slash = strchr(prefix, '/'); slash != NULL; slash = strchr(part, '/')) {
        size_t size = (size_t)(slash - part);
        if (size == 0 || (size <= 2 && strncmp(part, "..", size) == 0)) {
            return error_set(error, QS_ERROR_INPUT, "prefix %s: no part of a key in a directory may be empty, . or ..",
                             prefix);
        }
        part = slash + 1;
    }
    return 0;
}

int file_objects_list(const struct file_bucket *bucket, const char *prefix, const char *after, struct file_page *page,
                      struct error *error)
{
    *page = (struct file_page){0};
    int code = check_prefix(prefix, error);
    if (code != 0) {
        return code;
    }
    struct walk walk = {.bucket = bucket, .prefix = prefix, .page = page, .error = error};
    walk.after = memory_copy_text(after != NULL ? after : "");
    page->objects = memory_new(FILE_PAGE_SIZE, sizeof *page->objects);
    code = begin(&walk);
    while (code == 0 && walk.depth > 0 && !page->more) {
        code = step(&walk);
    }
    while (walk.depth > 0) {
        pop_level(&walk);
    }
    free(walk.levels);
    free(walk.after);
    if (code != 0) {
        file_page_free(page);
    }
    return code;
}

void file_page_free(struct file_page *page)
{
    for (size_t i = 0; page->objects != NULL && i < page->count; i++) {
        free((char *)(uintptr_t)page->objects[i].key);
    }
    free(page->objects);
    *page = (struct file_page){0};
}
