/*
 * The shared part of interprocess events.
 *
 * Each process keeps one table of its interprocess events in a sealed memfd. A name consists of the
 * process (id and start time, because ids are reused), the table (descriptor and inode) and the
 * index in it; another process opens the table through /proc/<pid>/fd and maps it. So the maker
 * must be alive when its event is opened, as on hardware.
 */
#include "softgpu/stream/event_share.h"

#include "base/descriptor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TABLE_EVENTS 4096
#define TABLE_SIZE   (TABLE_EVENTS * sizeof(struct sg_event_share))

static struct sg_event_share *table; /* this process's events; NULL until the first */
static struct gm_kept_file table_file = GM_NO_KEPT_FILE;
static uint32_t next_slot;

/* ---- This process's table ------------------------------------------------------------------- */

static CUresult open_table(void) {
    int fd = gm_fd_memory("softgpu-events");
    if (fd < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    /* No process that opens it can take pages away from this one. */
    void *map = MAP_FAILED;
    if (ftruncate(fd, (off_t)TABLE_SIZE) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        map = mmap(NULL, TABLE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED || !gm_kept_file_set(fd, &table_file)) {
        close(fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    table = map;
    return CUDA_SUCCESS;
}

CUresult sg_event_share_create(struct sg_event *event) {
    CUresult result = table ? CUDA_SUCCESS : open_table();
    if (result != CUDA_SUCCESS)
        return result;
    for (uint32_t tried = 0; tried < TABLE_EVENTS; tried++) {
        struct sg_event_share *share = &table[next_slot++ % TABLE_EVENTS];
        if (share->generation & 1)
            continue;
        share->recorded = share->completed = share->recorder = 0;
        share->generation++;
        event->share = share;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void sg_event_share_end(struct sg_event *event) {
    if (event->share_map)
        sg_event_share_close(event->share_map);
    else if (event->share)
        event->share->generation++;
    event->share = NULL;
    event->share_map = NULL;
}

/* ---- Records -------------------------------------------------------------------------------- */

uint64_t sg_event_share_mark(const struct sg_event *event) {
    return event->share->recorded;
}

void sg_event_share_complete(const struct sg_event *event, uint64_t number) {
    uint64_t before = event->share->completed;
    while (before < number &&
           !atomic_compare_exchange_weak(&event->share->completed, &before, number))
        ;
}

bool sg_event_share_reached(const struct sg_event *event, uint64_t number) {
    const struct sg_event_share *share = event->share;
    if (share->completed >= number)
        return true;
    /* The work of a dead process never completes: nothing should wait for it. Checking costs some
     * microseconds, so not every look does it. */
    static unsigned looks;
    if (++looks % 64 != 0)
        return false;
    uint64_t recorder = share->recorder;
    if (recorder == sg_process_self() || !sg_process_ended(recorder))
        return false;
    sg_event_share_complete(event, number);
    return true;
}

uint64_t sg_event_share_record(struct sg_event *event) {
    event->share->recorder = sg_process_self();
    return ++event->share->recorded;
}

/* ---- Names ---------------------------------------------------------------------------------- */

CUresult sg_event_share_name(const struct sg_event *event, struct sg_event_name *name) {
    if (!sg_process_fd_name(&table_file, &name->table))
        return CUDA_ERROR_OPERATING_SYSTEM;
    name->slot = (uint32_t)(event->share - table);
    name->generation = event->share->generation;
    return CUDA_SUCCESS;
}

static struct sg_event_share *map_table(const struct sg_process_fd *named) {
    int fd = sg_process_fd_open(named);
    if (fd < 0)
        return NULL;
    struct stat status;
    void *map = MAP_FAILED;
    if (fstat(fd, &status) == 0 && status.st_size == (off_t)TABLE_SIZE)
        map = mmap(NULL, TABLE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return map == MAP_FAILED ? NULL : map;
}

CUresult sg_event_share_open(const struct sg_event_name *name, struct sg_event_share **share,
                             void **map) {
    struct sg_event_share *events = name->slot < TABLE_EVENTS ? map_table(&name->table) : NULL;
    if (!events)
        return CUDA_ERROR_MAP_FAILED;
    if (events[name->slot].generation != name->generation) {
        sg_event_share_close(events);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *share = &events[name->slot];
    *map = events;
    return CUDA_SUCCESS;
}

void sg_event_share_close(void *map) {
    munmap(map, TABLE_SIZE);
}
