/* Tests whether a method works: the same bytes must be seen from both sides. */
#include "mapped/host_range.h"
#include "mapped/mapper.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"

#define WORDS 1024

static uint32_t word(uint32_t i) {
    return i * 2654435761u + 1;
}

/* Uses a stream of its own, independent of the program's captures and work. */
static gpumem_status copied(struct gm_mapper *mapper, CUstream stream, CUresult result,
                            const char *call) {
    const gpumem_driver_api *cu = mapper->device->cu;
    if (result == CUDA_SUCCESS)
        result = cu->cuStreamSynchronize(stream);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    return gm_cu_fail(cu, result, call, "%zu bytes", WORDS * sizeof(uint32_t));
}

static gpumem_status differs(const char *who) {
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "%s does not see the other's bytes", who);
}

static gpumem_status cpu_sees(struct gm_mapper *mapper, CUstream stream, CUdeviceptr address,
                              volatile uint32_t *host, const struct gm_piece *piece) {
    const gpumem_driver_api *cu = mapper->device->cu;
    uint32_t words[WORDS];
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = word(i);
    gpumem_status status =
        copied(mapper, stream, cu->cuMemcpyHtoDAsync_v2(address, words, sizeof words, stream),
               "cuMemcpyHtoDAsync");
    if (status == GPUMEM_OK && piece && mapper->ops->invalidate)
        status = mapper->ops->invalidate(piece, 0, sizeof words);
    for (uint32_t i = 0; i < WORDS && status == GPUMEM_OK; i++)
        if (host[i] != word(i))
            status = differs("the CPU");
    return status;
}

static gpumem_status device_sees(struct gm_mapper *mapper, CUstream stream, CUdeviceptr address,
                                 volatile uint32_t *host, const struct gm_piece *piece) {
    const gpumem_driver_api *cu = mapper->device->cu;
    uint32_t words[WORDS] = {0};
    gpumem_status status = GPUMEM_OK;
    for (uint32_t i = 0; i < WORDS; i++)
        host[i] = ~word(i);
    gm_mapped_fence();
    if (piece && mapper->ops->flush)
        status = mapper->ops->flush(piece, 0, sizeof words);
    if (status == GPUMEM_OK)
        status =
            copied(mapper, stream, cu->cuMemcpyDtoHAsync_v2(words, address, sizeof words, stream),
                   "cuMemcpyDtoHAsync");
    for (uint32_t i = 0; i < WORDS && status == GPUMEM_OK; i++)
        if (words[i] != ~word(i))
            status = differs("the device");
    return status;
}

gpumem_status gm_mapper_compare(struct gm_mapper *mapper, CUstream stream, CUdeviceptr address,
                                void *host, const struct gm_piece *piece) {
    gpumem_status status = cpu_sees(mapper, stream, address, host, piece);
    return status == GPUMEM_OK ? device_sees(mapper, stream, address, host, piece) : status;
}

static gpumem_status compare_in_range(struct gm_mapper *mapper, CUstream stream,
                                      struct gm_extent *extent) {
    struct gm_host_range *range;
    gpumem_status status = gm_host_range_make(mapper, extent, &range);
    if (status != GPUMEM_OK)
        return status;
    status = gm_extent_add_mirror(extent, &range->mirror);
    if (status == GPUMEM_OK) {
        status = gm_mapper_compare(mapper, stream, extent->address, range->base, &range->pieces[0]);
        gm_extent_remove_mirror(extent, &range->mirror);
    }
    gm_host_range_free(range);
    return status;
}

/* Without `map` the CPU was given access at the device's addresses. */
static gpumem_status compare_in_extent(struct gm_mapper *mapper, CUstream stream,
                                       struct gm_extent *extent) {
    if (mapper->ops->map)
        return compare_in_range(mapper, stream, extent);
    return gm_mapper_compare(mapper, stream, extent->address, (void *)(uintptr_t)extent->address,
                             NULL);
}

gpumem_status gm_mapper_try_chunk(struct gm_mapper *mapper, CUstream stream) {
    gpumem_device *device = mapper->device;
    const gpumem_handle_type type = mapper->ops->map ? GPUMEM_HANDLE_POSIX_FD : GPUMEM_HANDLE_NONE;
    CUmemAllocationProp prop = gm_vmm_prop(device, GPUMEM_LOCATION_DEVICE, 0, type, 0, 0);
    const CUmemAccessDesc access[2] = {
        {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
        {.location = {.type = CU_MEM_LOCATION_TYPE_HOST},
         .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
    };
    struct gm_extent extent = {.device = NULL};
    gm_extent_prepare(&extent, device, &device->meter);
    gm_extent_give(&extent, access, mapper->ops->map ? 1 : 2);
    size_t granule = 0;
    gpumem_status status =
        gm_vmm_granularity(device, &prop, GPUMEM_GRANULARITY_RECOMMENDED, &granule);
    if (status == GPUMEM_OK)
        status = gm_extent_init(&extent, granule, granule, 0);
    if (status != GPUMEM_OK)
        return status;
    status = gm_extent_append(&extent, &prop, &granule, 1);
    if (status == GPUMEM_OK)
        status = compare_in_extent(mapper, stream, &extent);
    gm_extent_destroy(&extent);
    return status;
}
