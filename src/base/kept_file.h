/*
 * A descriptor that stays open between calls, and the file that it was opened on.
 *
 * Other code can take over its number: daemons close all descriptors that they do not know, and the
 * next files that they open get those numbers. So before a file is changed through such a
 * descriptor, or the descriptor is passed on or closed, check that it is still the same file
 * (device and inode).
 */
#ifndef GM_BASE_KEPT_FILE_H
#define GM_BASE_KEPT_FILE_H

#include <stdbool.h>
#include <sys/types.h>

struct gm_kept_file {
    int fd; /* -1 for none */
    dev_t device;
    ino_t inode;
};
#define GM_NO_KEPT_FILE                                                                            \
    { .fd = -1 }

/* Remembers what `fd` is open on; false, with *file untouched, when it is not open. */
bool gm_kept_file_set(int fd, struct gm_kept_file *file);
/* Whether the descriptor is still open on the file. False, with EBADF in errno, if not. */
bool gm_kept_file_is_open(const struct gm_kept_file *file);
/* Another descriptor for the file, close-on-exec and above 2; -1, with errno, on failure. */
int gm_kept_file_duplicate(const struct gm_kept_file *file);
/* Closes the descriptor, unless it now belongs to other code, and sets *file to none. */
void gm_kept_file_close(struct gm_kept_file *file);

#endif
