/*
 * One mapping that grows: see guarded.h.
 */
#include "guarded.h"

#include <check.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

char *guarded_copy(const char *bytes, size_t size)
{
    static char *pages;
    static size_t room; /* readable bytes; one page more can't be read */
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (size > room || pages == NULL) {
        if (pages != NULL) {
            munmap(pages, room + page);
        }
        room = (size / page + 1) * page;
        pages = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(pages, MAP_FAILED);
        ck_assert_int_eq(mprotect(pages + room, page, PROT_NONE), 0);
    }
    char *copy = pages + room - size;
    if (size > 0) {
        memmove(copy, bytes, size); /* the bytes may be those of the copy before */
    }
    return copy;
}
