/*
 * A descriptor that stays open between calls, and the file that it was opened on.
 *
 * Its number is not ours alone: daemons close all descriptors that they do not know, and what they
 * open next gets the numbers. So whoever changes a file by such a descriptor, hands it to somebody,
 * or closes it asks first whether it is still the same file (device and inode).
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
/* Is the descriptor still open on the file? False, with EBADF in errno, when it is not. */
bool gm_kept_file_is_open(const struct gm_kept_file *file);
/* Another descriptor for the file, close-on-exec and above 2; -1, with errno, on failure. */
int gm_kept_file_duplicate(const struct gm_kept_file *file);
/* Closes the descriptor, unless it is somebody else's by now, and makes *file none. */
void gm_kept_file_close(struct gm_kept_file *file);

#endif
