/* Which method this machine has, by trying each. */
#include "mapped/mapper.h"

#include "mapped/host_range.h"
#include "memory/driver_error.h"
#include "memory/vmm.h"
#include "vulkan/device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define WORDS 1024

const char *gpumem_mapped_method_name(gpumem_mapped_method method) {
    switch (method) {
    case GPUMEM_MAPPED_ANY:
        return "any";
    case GPUMEM_MAPPED_VULKAN_IMPORT:
        return "vulkan-import";
    case GPUMEM_MAPPED_DMA_BUF:
        return "dma-buf";
    case GPUMEM_MAPPED_DESCRIPTOR:
        return "descriptor";
    case GPUMEM_MAPPED_HOST:
        return "host";
    }
    return "unknown";
}

void gm_mapped_fence(void) {
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

void gm_mapper_refuse(struct gm_mapper *mapper, gpumem_mapped_method method, const char *why) {
    size_t used = strlen(mapper->refusals);
    snprintf(mapper->refusals + used, sizeof mapper->refusals - used, "%s%s: %s", used ? "; " : "",
             gpumem_mapped_method_name(method), why);
}

/* ---- One method, tried ----------------------------------------------------------------------- */

struct trial {
    gpumem_device *device;
    CUstream stream;
    struct gm_extent extent;
    struct gm_host_range *range;
};

/* On a stream of its own, which no capture and no work of the program's has to do with. */
static gpumem_status copied(struct trial *trial, CUresult result, const char *call) {
    const gpumem_driver_api *cu = trial->device->cu;
    if (result == CUDA_SUCCESS)
        result = cu->cuStreamSynchronize(trial->stream);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    return gm_cu_fail(cu, result, call, "%zu bytes", WORDS * sizeof(uint32_t));
}

static gpumem_status differs(const char *who) {
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "%s does not see the other's bytes", who);
}

static gpumem_status compare(struct trial *trial) {
    const gpumem_driver_api *cu = trial->device->cu;
    uint32_t words[WORDS];
    volatile uint32_t *host = (volatile uint32_t *)(void *)trial->range->base;
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i * 2654435761u + 1;
    gpumem_status status = copied(
        trial, cu->cuMemcpyHtoDAsync_v2(trial->extent.address, words, sizeof words, trial->stream),
        "cuMemcpyHtoDAsync");
    if (status == GPUMEM_OK)
        status = gm_host_range_invalidate(trial->range, 0, sizeof words);
    for (size_t i = 0; i < WORDS && status == GPUMEM_OK; i++)
        if (host[i] != words[i])
            status = differs("the CPU");
    for (size_t i = 0; i < WORDS && status == GPUMEM_OK; i++)
        host[i] = ~words[i];
    if (status == GPUMEM_OK)
        status = gm_host_range_flush(trial->range, 0, sizeof words);
    if (status == GPUMEM_OK)
        status = copied(
            trial,
            cu->cuMemcpyDtoHAsync_v2(words, trial->extent.address, sizeof words, trial->stream),
            "cuMemcpyDtoHAsync");
    for (uint32_t i = 0; i < WORDS && status == GPUMEM_OK; i++)
        if (words[i] != ~(i * 2654435761u + 1))
            status = differs("the device");
    return status;
}

static gpumem_status compare_in_memory(struct gm_mapper *mapper, struct trial *trial) {
    gpumem_status status = gm_host_range_make(mapper, &trial->extent, &trial->range);
    if (status != GPUMEM_OK)
        return status;
    status = gm_extent_add_mirror(&trial->extent, &trial->range->mirror);
    if (status == GPUMEM_OK) {
        status = compare(trial);
        gm_extent_remove_mirror(&trial->extent, &trial->range->mirror);
    }
    gm_host_range_free(trial->range);
    return status;
}

/* One granule of the device's memory. */
static gpumem_status compare_in_granule(struct gm_mapper *mapper, struct trial *trial) {
    gpumem_device *device = mapper->device;
    CUmemAllocationProp prop =
        gm_vmm_prop(device, GPUMEM_LOCATION_DEVICE, 0, GPUMEM_HANDLE_POSIX_FD, 0, 0);
    const CUmemAccessDesc own = {.location = prop.location,
                                 .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    struct gm_extent *extent = &trial->extent;
    size_t granule = 0;
    *extent = (struct gm_extent){
        .device = device, .meter = &device->meter, .access = &own, .access_count = 1};
    gpumem_status status =
        gm_vmm_granularity(device, &prop, GPUMEM_GRANULARITY_RECOMMENDED, &granule);
    if (status == GPUMEM_OK)
        status = gm_extent_init(extent, granule, granule, 0);
    if (status != GPUMEM_OK)
        return status;
    status = gm_extent_append(extent, &prop, &granule, 1);
    if (status == GPUMEM_OK)
        status = compare_in_memory(mapper, trial);
    gm_extent_destroy(extent);
    return status;
}

/* Also after a refusal, which may have made it. */
static void end_stream(gpumem_device *device, CUstream stream) {
    if (stream && device->cu->cuStreamDestroy_v2(stream) != CUDA_SUCCESS)
        gm_meter_quarantine(&device->meter, 0);
}

static gpumem_status try_out(struct gm_mapper *mapper) {
    const gpumem_driver_api *cu = mapper->device->cu;
    struct trial trial = {.device = mapper->device};
    CUresult result = cu->cuStreamCreate(&trial.stream, CU_STREAM_NON_BLOCKING);
    gpumem_status status = result == CUDA_SUCCESS
                               ? compare_in_granule(mapper, &trial)
                               : gm_cu_fail(cu, result, "cuStreamCreate", "no stream for a trial");
    end_stream(mapper->device, trial.stream);
    return status;
}

/* ---- All of them ----------------------------------------------------------------------------- */

static void shut(struct gm_mapper *mapper) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    if (mapper->ops && mapper->ops->close)
        mapper->ops->close(mapper);
    mapper->ops = NULL;
    gm_error_restore(&saved);
}

static gpumem_status open_one(struct gm_mapper *mapper, const struct gm_mapper_ops *ops) {
    gpumem_status status = ops->open(mapper);
    if (status != GPUMEM_OK)
        return status;
    mapper->ops = ops;
    status = try_out(mapper);
    if (status != GPUMEM_OK)
        shut(mapper);
    return status;
}

/* Not a refusal of the method, but a machine that is out of something. */
static bool is_short(gpumem_status status) {
    return status == GPUMEM_ERROR_OUT_OF_MEMORY || status == GPUMEM_ERROR_OUT_OF_HOST_MEMORY;
}

gpumem_status gm_mapper_open(struct gm_mapper *mapper, gpumem_device *device,
                             const struct gm_mapper_wishes *wishes) {
    static const struct gm_mapper_ops *const all[] = {&gm_mapper_vulkan, &gm_mapper_dma_buf,
                                                      &gm_mapper_descriptor};
    *mapper = (struct gm_mapper){.device = device, .wishes = *wishes};
    gpumem_status status = gm_vmm_supported(device);
    if (status != GPUMEM_OK)
        return status;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        gpumem_mapped_method method = all[i]->method;
        if (wishes->strict && wishes->method != method)
            continue;
        if (method < wishes->method)
            continue;
        status = open_one(mapper, all[i]);
        if (status == GPUMEM_OK || is_short(status))
            return status;
        gm_mapper_refuse(mapper, method, gpumem_last_error()->message);
    }
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "no mapping for the CPU: %s",
                   mapper->refusals[0] ? mapper->refusals : "no such method");
}

void gm_mapper_open_host(struct gm_mapper *mapper, gpumem_device *device) {
    static const struct gm_mapper_ops host = {.method = GPUMEM_MAPPED_HOST};
    mapper->device = device;
    mapper->ops = &host;
    mapper->coherent = true;
    mapper->atom = 1;
}

void gm_mapper_close(struct gm_mapper *mapper) {
    shut(mapper);
}

gpumem_status gm_mapper_info(const struct gm_mapper *mapper, gpumem_mapped_info *info) {
    *info = (gpumem_mapped_info){.size = sizeof *info,
                                 .method = mapper->ops->method,
                                 .coherent = mapper->coherent,
                                 .atom = mapper->atom};
    memcpy(info->refusals, mapper->refusals, sizeof info->refusals);
    if (mapper->vulkan && gm_vulkan_get_facts(mapper->vulkan)->has_budget)
        return gm_vulkan_get_budget(mapper->vulkan, &info->budget_bytes, &info->budget_used);
    return GPUMEM_OK;
}
