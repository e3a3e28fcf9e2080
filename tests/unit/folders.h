/*
 * Folders of a test's own.
 */
#ifndef TESTS_UNIT_FOLDERS_H
#define TESTS_UNIT_FOLDERS_H

/* Removes the folder with all that is in it. It must be there. */
void folder_remove(const char *path);

/* A file in it with that text, in the place of what was there. */
void folder_write(const char *path, const char *name, const char *text);

#endif
