/*
 * Pools between processes. An exportable pool keeps all its memory in one sparse memory file, whose
 * descriptor is what is exported, so a pool handle and an offset name any allocation, including
 * those in segments created later. The first page of the file describes the pool.
 *
 * The importer maps the pages around an allocation at an address of its own. It holds the file, so
 * its mappings remain valid when the exporter ends; what the exporter frees reads as zero once its
 * segment has been given back.
 */
#include "base/descriptor.h"
#include "softgpu/address/memfile.h"
#include "softgpu/address/phys.h"
#include "softgpu/core/config.h"
#include "softgpu/pool/internal.h"
#include "softgpu/process/fabric.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAGIC    "softgpu pool 1\n"
#define POINTER_MAGIC 0x3172747067733031u

struct file_head {
    char magic[16];
    unsigned char uuid[16];
    CUuuid device; /* zero for host memory */
    CUmemPoolProps props;
};

/* What an application passes on as CUmemPoolPtrExportData. */
struct pointer_data {
    uint64_t magic;
    unsigned char uuid[16];
    uint64_t offset; /* in the pool's file */
    uint64_t size;   /* as allocated */
    uint64_t check;  /* of all the above */
    uint64_t unused[2];
};
_Static_assert(sizeof(struct pointer_data) == sizeof(CUmemPoolPtrExportData), "64 bytes");

/* ---- The file -------------------------------------------------------------------------------- */

static CUmemAllocationProp memory_props(const struct sg_pool *pool) {
    return (CUmemAllocationProp){
        .type = pool->props.allocType,
        .requestedHandleTypes = pool->props.handleTypes,
        .location = pool->props.location,
    };
}

CUresult sg_pool_file_create(struct sg_pool *pool) {
    struct file_head head = {.magic = FILE_MAGIC, .props = pool->props};
    if (getrandom(pool->uuid, sizeof pool->uuid, 0) != (ssize_t)sizeof pool->uuid)
        return CUDA_ERROR_OPERATING_SYSTEM;
    memcpy(head.uuid, pool->uuid, sizeof head.uuid);
    if (pool->device >= 0)
        head.device = sg_device(pool->device)->uuid;
    struct gm_kept_file file;
    if (!sg_memfile_new("softgpu pool", SG_PAGE, &file))
        return CUDA_ERROR_OUT_OF_MEMORY;
    /* It must never shrink: an importer's access beyond the end would be a SIGBUS. */
    if (pwrite(file.fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
        fcntl(file.fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
        sg_log(SG_LOG_ERROR, "cannot make the file of a shareable pool: %s", strerror(errno));
        gm_kept_file_close(&file);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pool->file = file;
    pool->file_used = SG_PAGE;
    return CUDA_SUCCESS;
}

CUresult sg_pool_file_extend(struct sg_pool *pool, size_t size, size_t step, struct sg_phys **parts,
                             uint64_t *offset) {
    CUmemAllocationProp prop = memory_props(pool);
    uint64_t end = pool->file_used + size;
    if (end < pool->file_used || !sg_memfile_grow(&pool->file, end))
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t count = 0;
    for (size_t done = 0; done < size; done += parts[count++]->size) {
        size_t part = size - done < step ? size - done : step;
        CUresult result = sg_phys_create_in(&pool->file, pool->file_used + done, &prop, part, false,
                                            &parts[count]);
        if (result == CUDA_SUCCESS)
            continue;
        while (count > 0)
            sg_phys_unref(parts[--count]);
        return result;
    }
    /* Offsets are never reused, so old export data cannot name newer memory. */
    *offset = pool->file_used;
    pool->file_used = end;
    return CUDA_SUCCESS;
}

static bool may_export(const struct sg_pool *pool, CUmemAllocationHandleType type) {
    bool known =
        type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || type == CU_MEM_HANDLE_TYPE_FABRIC;
    return known && ((unsigned)pool->props.handleTypes & (unsigned)type) && !pool->imported;
}

static CUresult export_fabric(struct sg_pool *pool, void *handle) {
    if (!sg_fabric_permitted())
        return CUDA_ERROR_NOT_PERMITTED;
    CUresult result = sg_fabric_export(&pool->file, SG_FABRIC_POOL, handle);
    pool->exported |= result == CUDA_SUCCESS;
    return result;
}

CUresult sg_cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool handle,
                                             CUmemAllocationHandleType handleType,
                                             unsigned long long flags) {
    struct sg_pool *pool = sg_pool_get(handle);
    if (!handle_out || !pool || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!may_export(pool, handleType))
        return CUDA_ERROR_INVALID_VALUE;
    if (handleType == CU_MEM_HANDLE_TYPE_FABRIC)
        return export_fabric(pool, handle_out);
    int fd = gm_kept_file_duplicate(&pool->file);
    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    *(int *)handle_out = fd;
    pool->exported = true;
    return CUDA_SUCCESS;
}

/* ---- Importing a pool ------------------------------------------------------------------------ */

static const char *read_head(int fd, struct file_head *head) {
    struct stat status;
    if (fstat(fd, &status) != 0)
        return "not an open file descriptor";
    int seals = fcntl(fd, F_GET_SEALS);
    if (!S_ISREG(status.st_mode) || seals < 0 || !(seals & F_SEAL_SHRINK))
        return "not a sealed memory file";
    if (pread(fd, head, sizeof *head, 0) != (ssize_t)sizeof *head ||
        memcmp(head->magic, FILE_MAGIC, sizeof FILE_MAGIC) != 0)
        return "not a pool of softgpu, or of another version of it";
    return NULL;
}

/* Devices are identified by UUID: the other process may see them in another order. */
static CUresult find_device(struct file_head *head) {
    if (head->props.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_SUCCESS;
    for (int i = 0; i < sg_device_count(); i++) {
        if (memcmp(&sg_device(i)->uuid, &head->device, sizeof head->device) == 0) {
            head->props.location.id = i;
            return CUDA_SUCCESS;
        }
    }
    sg_log(SG_LOG_WARNING, "imported pool belongs to a device that this process does not see");
    return CUDA_ERROR_INVALID_DEVICE;
}

static CUresult import_pool(int fd, const struct file_head *head, CUmemoryPool *out) {
    struct gm_kept_file own;
    if (!gm_kept_file_set(gm_fd_duplicate(fd), &own))
        return CUDA_ERROR_OPERATING_SYSTEM;
    struct sg_pool *pool = sg_pool_new(&head->props);
    if (!pool) {
        gm_kept_file_close(&own);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pool->imported = true;
    pool->file = own;
    memcpy(pool->uuid, head->uuid, sizeof pool->uuid);
    return sg_pool_publish(pool, out);
}

static CUresult import_from(int fd, CUmemoryPool *pool_out) {
    struct file_head head;
    const char *wrong = read_head(fd, &head);
    if (wrong) {
        sg_log(SG_LOG_WARNING, "descriptor %d cannot be imported as a pool: %s", fd, wrong);
        /* As on H200. */
        return sg_phys_exported(fd) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_UNKNOWN;
    }
    CUresult result = find_device(&head);
    return result == CUDA_SUCCESS ? import_pool(fd, &head, pool_out) : result;
}

static CUresult import_fabric(const void *handle, CUmemoryPool *pool_out) {
    int fd;
    CUresult result = sg_fabric_open(handle, SG_FABRIC_POOL, &fd);
    if (result != CUDA_SUCCESS)
        return result;
    result = import_from(fd, pool_out);
    close(fd);
    return result;
}

CUresult sg_cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
                                               CUmemAllocationHandleType handleType,
                                               unsigned long long flags) {
    if (!pool_out || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *pool_out = NULL;
    if (handleType == CU_MEM_HANDLE_TYPE_WIN32 || handleType == CU_MEM_HANDLE_TYPE_WIN32_KMT)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (handleType == CU_MEM_HANDLE_TYPE_FABRIC)
        return import_fabric(handle, pool_out);
    /* As recorded: 0 is no handle, and so no descriptor. */
    if (handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !handle)
        return CUDA_ERROR_INVALID_VALUE;
    return import_from((int)(intptr_t)handle, pool_out);
}

/* ---- Pointers -------------------------------------------------------------------------------- */

/* FNV-1a: to reject what is not export data, not to keep anyone out. */
static uint64_t checksum(const struct pointer_data *data) {
    const unsigned char *bytes = (const unsigned char *)data;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < offsetof(struct pointer_data, check); i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

CUresult sg_cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr ptr) {
    struct sg_range *range = sg_range_find(ptr);
    if (!out || !range || range->ops != &sg_pool_range_ops || range->start != ptr)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sg_block *block = range->owner;
    const struct sg_pool *pool = block->segment->pool;
    /* On H200 the pool must have been exported before its pointers. */
    if (!pool->exported)
        return CUDA_ERROR_INVALID_VALUE;
    struct pointer_data data = {
        .magic = POINTER_MAGIC,
        .offset = block->segment->file_offset + block->offset,
        .size = range->size,
    };
    memcpy(data.uuid, pool->uuid, sizeof data.uuid);
    data.check = checksum(&data);
    memcpy(out, &data, sizeof data);
    sg_range_expose(range->start, range->size);
    return CUDA_SUCCESS;
}

static bool data_fits(const struct sg_pool *pool, const struct pointer_data *data) {
    struct stat status;
    if (data->magic != POINTER_MAGIC || data->check != checksum(data) ||
        memcmp(data->uuid, pool->uuid, sizeof data->uuid) != 0)
        return false;
    return gm_kept_file_is_open(&pool->file) && fstat(pool->file.fd, &status) == 0 &&
           data->size > 0 && data->offset <= (uint64_t)status.st_size &&
           data->size <= (uint64_t)status.st_size - data->offset;
}

static const struct sg_block *find_import(const struct sg_pool *pool, uint64_t offset) {
    for (const struct sg_pool_segment *s = pool->first; s; s = s->next)
        if (s->blocks->state == SG_BLOCK_LIVE &&
            s->file_offset + s->blocks->range.phys_offset == offset)
            return s->blocks;
    return NULL;
}

static CUresult map_pointer(struct sg_pool *pool, const struct pointer_data *data,
                            CUdeviceptr *address) {
    CUmemAllocationProp prop = memory_props(pool);
    uint64_t first = data->offset / SG_PAGE * SG_PAGE;
    uint64_t end = (data->offset + data->size + SG_PAGE - 1) / SG_PAGE * SG_PAGE;
    struct sg_pool_segment *segment;
    struct sg_phys *phys;
    CUresult result =
        sg_phys_create_in(&pool->file, first, &prop, (size_t)(end - first), true, &phys);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_pool_add_segment(pool, &phys, 1, first, &segment);
    sg_phys_unref(phys);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_block *block = segment->blocks;
    result = sg_block_live(block, (size_t)(data->offset - first), (size_t)data->size);
    if (result == CUDA_SUCCESS)
        *address = block->range.start;
    return result;
}

CUresult sg_cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool handle,
                                   CUmemPoolPtrExportData *shareData) {
    struct sg_pool *pool = sg_pool_get(handle);
    struct pointer_data data;
    if (!ptr_out || !pool || !shareData)
        return CUDA_ERROR_INVALID_VALUE;
    *ptr_out = 0;
    memcpy(&data, shareData, sizeof data);
    if (!pool->imported || !data_fits(pool, &data))
        return CUDA_ERROR_INVALID_VALUE;
    /* On H200 a second import returns the address of the first, and one free ends both. */
    const struct sg_block *known = find_import(pool, data.offset);
    if (known) {
        *ptr_out = known->range.start;
        return CUDA_SUCCESS;
    }
    return map_pointer(pool, &data, ptr_out);
}
