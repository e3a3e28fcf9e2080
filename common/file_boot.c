/*
 * The directory store before any worker runs: is it there and can it be written (the boot probe of spec 3.9), and what
 * an earlier process left in .tmp is removed. Both block: nothing else goes on yet.
 */
#include <stdatomic.h>

#include "common/file_store.h"
#include "common/file_temporary.h"

/* Makes the folders, and writes and removes a temporary the way an object is written. */
int file_store_probe(const char *root, const char *bucket, struct error *error)
{
    static char byte[] = "\n";
    struct iovec piece = {.iov_base = byte, .iov_len = 1};
    struct object_body body = {.pieces = &piece, .piece_count = 1, .size = 1};
    struct file_bucket target;
    char name[FILE_TEMPORARY_SIZE];
    atomic_bool stop = false;

    file_bucket_open(&target, root, bucket);
    int code = file_bucket_make(&target, error);
    if (code == 0) {
        code = file_temporary_create(&target, name, error);
    }
    if (code == 0) {
        code = file_temporary_write(&target, name, 0, &body, &stop, error);
        struct error ignored;
        int removed = file_temporary_remove(&target, name, code == 0 ? error : &ignored);
        code = code == 0 ? removed : code;
    }
    file_bucket_free(&target);
    return code;
}

int file_store_clean(const char *root, const char *bucket, struct error *error)
{
    struct file_bucket target;

    file_bucket_open(&target, root, bucket);
    int code = file_temporaries_clean(&target, error);
    file_bucket_free(&target);
    return code;
}
