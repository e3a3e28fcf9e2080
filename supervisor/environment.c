/*
 * See environment.h. The kernel lays out arguments and environment as one run of NUL-terminated strings, and reads a
 * title past the arguments' end as long as no NUL stands at that end (proc(5), cmdline): so the whole run is room for a
 * title once the environment's strings are copied elsewhere.
 */
#include "supervisor/environment.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/memory.h"

static const char *const secrets[] = {"PG_PASSWORD", "JWT_SECRET", "QUEEN_ENCRYPTION_KEY", "QUEEN_SYNC_SECRET"};

static struct {
    char *start;
    size_t arguments; /* bytes of argv's strings */
    size_t size;      /* and of the environment's behind them */
    size_t used;      /* by the title before */
} block;

static bool names(const char *entry, const char *name)
{
    size_t size = strlen(name);

    return strncmp(entry, name, size) == 0 && entry[size] == '=';
}

/* Every entry of that name, as a hostile environment may hold it twice. explicit_bzero() isn't optimised away. */
static void wipe(const char *name)
{
    for (char **entry = environ; *entry != NULL; entry++) {
        if (names(*entry, name)) {
            explicit_bzero(*entry, strlen(*entry));
        }
    }
}

static void forget_secrets(void)
{
    char **kept = environ;

    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        wipe(secrets[i]);
    }
    for (char **entry = environ; *entry != NULL; entry++) {
        if (**entry != '\0') {
            *kept++ = *entry;
        }
    }
    *kept = NULL;
}

/* Takes the string into the block where it lies right behind it. */
static void extend(char *string)
{
    if (string == block.start + block.size) {
        block.size += strlen(string) + 1;
    }
}

static void measure(int argc, char **argv)
{
    block.start = argv[0];
    for (int i = 0; i < argc; i++) {
        extend(argv[i]);
    }
    block.arguments = block.size;
    for (char **entry = environ; *entry != NULL; entry++) {
        extend(*entry);
    }
}

static void move_environment(void)
{
    size_t count = 0;
    char **moved;

    while (environ[count] != NULL) {
        count++;
    }
    moved = memory_new(count + 1, sizeof *moved);
    for (size_t i = 0; i < count; i++) {
        moved[i] = memory_copy_text(environ[i]);
    }
    environ = moved;
}

void environment_init(int argc, char **argv)
{
    if (argc < 1) {
        forget_secrets();
        return;
    }
    measure(argc, argv);
    forget_secrets();
    move_environment();
}

void environment_leave_service(void)
{
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
}

void environment_set_title(const char *title)
{
    size_t size = strlen(title);
    size_t clear = block.used > block.arguments ? block.used : block.arguments;

    if (block.size == 0) {
        return;
    }
    if (size > block.size - 1) {
        size = block.size - 1;
    }
    memcpy(block.start, title, size);
    if (clear > size) {
        memset(block.start + size, 0, clear - size);
    }
    block.start[size] = '\0';
    block.used = size + 1;
}
