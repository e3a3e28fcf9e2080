#include "tests/unit/folders.h"

#include <check.h>
#include <ftw.h>
#include <stdio.h>

#define DESCRIPTORS 16

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

void folder_remove(const char *path)
{
    ck_assert_int_eq(nftw(path, remove_entry, DESCRIPTORS, FTW_DEPTH | FTW_PHYS), 0);
}

void folder_write(const char *path, const char *name, const char *text)
{
    char whole[256];

    (void)snprintf(whole, sizeof whole, "%s/%s", path, name);
    FILE *file = fopen(whole, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}
