#include "softgpu/process/live.h"

#include "base/descriptor.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOTS 65536
#define MAGIC "softgpu live\n"

struct table {
    char magic[16];
    uint32_t generations[SLOTS];
};

static struct table *table; /* this process's; NULL until the first handle */
static struct gm_kept_file table_file = GM_NO_KEPT_FILE;
static uint32_t next_slot;

static bool make_table(void) {
    int fd = gm_fd_memory("softgpu live");
    if (fd < 0)
        return false;
    void *map = MAP_FAILED;
    if (ftruncate(fd, sizeof *table) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        map = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED || !gm_kept_file_set(fd, &table_file)) {
        close(fd);
        return false;
    }
    table = map;
    memcpy(table->magic, MAGIC, sizeof MAGIC);
    return true;
}

static void step(uint32_t slot) {
    __atomic_add_fetch(&table->generations[slot], 1, __ATOMIC_RELEASE);
}

bool sg_live_begin(struct sg_live *live) {
    if (!(table ? gm_kept_file_is_open(&table_file) : make_table()))
        return false;
    for (uint32_t tried = 0; tried < SLOTS; tried++) {
        uint32_t slot = next_slot++ % SLOTS;
        if (table->generations[slot] & 1)
            continue;
        step(slot);
        *live = (struct sg_live){
            .table = (uint32_t)table_file.fd, .slot = slot, .generation = table->generations[slot]};
        return true;
    }
    return false;
}

void sg_live_end(const struct sg_live *live) {
    step(live->slot);
}

bool sg_live_is(const struct sg_process_fd *process, const struct sg_live *live) {
    char magic[sizeof MAGIC];
    uint32_t generation = 0;
    struct stat status;
    off_t at = (off_t)(offsetof(struct table, generations) + live->slot * sizeof generation);
    if (live->slot >= SLOTS)
        return false;
    int fd = sg_process_fd_open_other(process, live->table, O_RDONLY);
    if (fd < 0)
        return false;
    bool is_table = fstat(fd, &status) == 0 && status.st_size == (off_t)sizeof *table &&
                    pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
                    memcmp(magic, MAGIC, sizeof magic) == 0;
    bool read =
        is_table && pread(fd, &generation, sizeof generation, at) == (ssize_t)sizeof generation;
    close(fd);
    return read && generation == live->generation;
}
