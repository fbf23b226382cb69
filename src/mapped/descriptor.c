/* Chunks that are mapped through a descriptor: the exported one, or that of the address range. */
#include "base/log.h"
#include "mapped/mapper.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

bool gm_place_reserve(void *place, size_t bytes) {
    if (mmap(place, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0) != MAP_FAILED)
        return true;
    gm_log(GPUMEM_LOG_ERROR,
           "%zu bytes at %p stay mapped for the CPU: the system does not "
           "replace the mapping",
           bytes, place);
    return false;
}

static gpumem_status map_descriptor(const struct gm_piece *piece, int fd, const char *what) {
    void *mapped =
        mmap(piece->place, piece->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (mapped == piece->place)
        return GPUMEM_OK;
    gpumem_status status = gm_fail_system(GPUMEM_ERROR_NOT_SUPPORTED, errno, "mmap",
                                          "%zu bytes of %s", piece->bytes, what);
    struct gm_error_record saved;
    gm_error_save(&saved);
    (void)gm_place_reserve(piece->place, piece->bytes); /* the attempt may have unmapped it */
    gm_error_restore(&saved);
    return status;
}

static gpumem_status map_exported(struct gm_mapper *mapper, struct gm_piece *piece) {
    int fd;
    gpumem_status status = gm_vmm_export_fd(mapper->device, piece->handle, &fd);
    if (status != GPUMEM_OK)
        return status;
    status = map_descriptor(piece, fd, "the exported descriptor");
    close(fd);
    return status;
}

static gpumem_status map_dma_buf(struct gm_mapper *mapper, struct gm_piece *piece) {
    int fd = -1;
    CUresult result = mapper->device->cu->cuMemGetHandleForAddressRange(
        &fd, piece->address, piece->bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    gpumem_status status =
        result == CUDA_SUCCESS
            ? map_descriptor(piece, fd, "the dma-buf")
            : gm_cu_fail(mapper->device->cu, result, "cuMemGetHandleForAddressRange",
                         "no dma-buf of %zu bytes", piece->bytes);
    if (fd >= 0) /* even after a refusal, which may have made it */
        close(fd);
    return status;
}

static bool unmap(struct gm_mapper *mapper, struct gm_piece *piece) {
    (void)mapper;
    return gm_place_reserve(piece->place, piece->bytes);
}

static gpumem_status open_coherent(struct gm_mapper *mapper) {
    mapper->coherent = !mapper->wishes.force_non_coherent;
    mapper->atom = 1;
    return GPUMEM_OK;
}

const struct gm_mapper_ops gm_mapper_descriptor = {.method = GPUMEM_MAPPED_DESCRIPTOR,
                                                   .open = open_coherent,
                                                   .try_out = gm_mapper_try_chunk,
                                                   .map = map_exported,
                                                   .unmap = unmap};

const struct gm_mapper_ops gm_mapper_dma_buf = {.method = GPUMEM_MAPPED_DMA_BUF,
                                                .open = open_coherent,
                                                .try_out = gm_mapper_try_chunk,
                                                .map = map_dma_buf,
                                                .unmap = unmap};
