/*
 * Folders of a test's own.
 */
#ifndef TESTS_UNIT_FOLDERS_H
#define TESTS_UNIT_FOLDERS_H

/* Removes the folder with all that is in it. It must be there. */
void folder_remove(const char *path);

#endif
