/*
 * queen-s3: mirrors a Queen log into object storage. What an operator starts (spec 4.4): each command is an entry of one
 * table (command.h).
 */
#include <fcntl.h>
#include <unistd.h>

#include "supervisor/command.h"
#include "supervisor/environment.h"

/* Descriptors 0 to 2 are there, whatever started us: a socket must not become someone's standard error. */
static void open_standard(void)
{
    int descriptor;

    do {
        descriptor = open("/dev/null", O_RDWR);
    } while (descriptor >= 0 && descriptor <= STDERR_FILENO);
    if (descriptor >= 0) {
        (void)close(descriptor);
    }
}

int main(int argc, char **argv)
{
    open_standard();
    environment_init(argc, argv);
    return command_main(argc, argv);
}
