/* The file being loaded: opened once, and recognised as changed. */
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

/* Fails for what is no regular file with bytes in it; the status is SYSTEM with the errno. */
gpumem_status gm_file_open(const char *path, struct gm_file *file);
void gm_file_close(struct gm_file *file);

/* All of [offset, offset + bytes). DATA when the file ends before. Thread-safe. */
gpumem_status gm_file_read(const struct gm_file *file, uint64_t offset, void *to, size_t bytes);

/* DATA when size or modification time are not what they were at the opening. */
gpumem_status gm_file_check_unchanged(const struct gm_file *file);

#endif
