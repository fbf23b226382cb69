/* The file being loaded: opened once, with detection of changes. */
#ifndef GM_LOAD_FILE_H
#define GM_LOAD_FILE_H

#include <gpumem/status.h>
#include <stdint.h>
#include <sys/stat.h>

struct gm_file {
    int fd;
    const char *path; /* the caller's */
    uint64_t size;
    struct stat opened;
};

/* Fails for anything but a non-empty regular file; the status is SYSTEM with the errno. */
gpumem_status gm_file_open(const char *path, struct gm_file *file);
void gm_file_close(struct gm_file *file);

/* Reads all of [offset, offset + bytes). DATA if the file ends before that. Thread-safe. */
gpumem_status gm_file_read(const struct gm_file *file, uint64_t offset, void *to, size_t bytes);

/* DATA if size or modification time are not as when the file was opened. */
gpumem_status gm_file_check_unchanged(const struct gm_file *file);

#endif
