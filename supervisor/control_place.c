/* Where a pool's control socket is: control_place.h. */
#include "supervisor/control_place.h"

#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "common/memory.h"
#include "supervisor/control.h"

void control_places_init(struct control_places *places, const char *setting, const char *sink, const char *folder,
                         const char *runtime_folder)
{
    *places = (struct control_places){.count = 0};
    if (setting == NULL) {
        places->paths[places->count++] = memory_format("%s/%s.sock", folder, sink);
        if (runtime_folder != NULL && runtime_folder[0] == '/') {
            places->paths[places->count++] = memory_format("%s/queen-s3-%s.sock", runtime_folder, sink);
        }
    } else if (strcmp(setting, "off") != 0) {
        places->chosen = true;
        places->paths[places->count++] = memory_copy_text(setting);
    }
}

void control_places_free(struct control_places *places)
{
    for (size_t i = 0; i < places->count; i++) {
        free(places->paths[i]);
    }
    *places = (struct control_places){0};
}

size_t control_path_most(void)
{
    struct sockaddr_un address;

    return sizeof address.sun_path - sizeof CONTROL_NEW_SUFFIX;
}

int control_path_check(const char *path, struct error *error)
{
    if (strlen(path) <= control_path_most()) {
        return 0;
    }
    return error_set(error, QS_ERROR_INPUT, "longer than the %zu bytes that a socket's path can have here",
                     control_path_most());
}
