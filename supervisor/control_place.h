/*
 * Where a pool's control socket is (spec 4.3), for the pool that makes it and for whoever asks it.
 */
#ifndef SUPERVISOR_CONTROL_PLACE_H
#define SUPERVISOR_CONTROL_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

#define CONTROL_FOLDER    "/run/queen-s3"
#define CONTROL_PLACE_MAX 2

struct control_places {
    char *paths[CONTROL_PLACE_MAX]; /* in the order in which a pool tries them; malloc */
    size_t count;                   /* 0: QUEEN_S3_CONTROL=off, or there is nowhere */
    bool chosen;                    /* by QUEEN_S3_CONTROL: there or nowhere */
};

/* setting: QUEEN_S3_CONTROL, NULL where it isn't set; folder: CONTROL_FOLDER but for tests; runtime_folder:
 * XDG_RUNTIME_DIR, which doesn't count where it is NULL or no absolute path. */
void control_places_init(struct control_places *places, const char *setting, const char *sink, const char *folder,
                         const char *runtime_folder);
void control_places_free(struct control_places *places);

/* The longest path that a socket can have: the pool makes it under a longer name first. */
size_t control_path_most(void);
/* 0, or QS_ERROR_INPUT where it is longer. The message goes behind "<path>: ". */
int control_path_check(const char *path, struct error *error);

#endif
