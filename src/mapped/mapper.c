/* Finds the method that works on this machine, by trying each. */
#include "mapped/mapper.h"

#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "vulkan/device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

const char *gpumem_mapped_method_name(gpumem_mapped_method method) {
    switch (method) {
    case GPUMEM_MAPPED_ANY:
        return "any";
    case GPUMEM_MAPPED_COHERENT:
        return "coherent";
    case GPUMEM_MAPPED_VULKAN_IMPORT:
        return "vulkan-import";
    case GPUMEM_MAPPED_DMA_BUF:
        return "dma-buf";
    case GPUMEM_MAPPED_VULKAN_EXPORT:
        return "vulkan-export";
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

static void refuse(struct gm_mapper *mapper, gpumem_mapped_method method, const char *why) {
    size_t used = strlen(mapper->refusals);
    snprintf(mapper->refusals + used, sizeof mapper->refusals - used, "%s%s: %s", used ? "; " : "",
             gpumem_mapped_method_name(method), why);
}

/* ---- One method ------------------------------------------------------------------------------ */

/* Also after a refused call, which may have made it. */
static void end_stream(gpumem_device *device, CUstream stream) {
    if (stream && device->cu->cuStreamDestroy_v2(stream) != CUDA_SUCCESS)
        gm_meter_quarantine(&device->meter, 0);
}

static void shut(struct gm_mapper *mapper) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    if (mapper->ops && mapper->ops->close)
        mapper->ops->close(mapper);
    mapper->ops = NULL;
    gm_error_restore(&saved);
}

static gpumem_status open_one(struct gm_mapper *mapper, const struct gm_mapper_ops *ops,
                              CUstream stream) {
    gpumem_status status = ops->open(mapper);
    if (status != GPUMEM_OK)
        return status;
    mapper->ops = ops;
    status = ops->try_out(mapper, stream);
    if (status != GPUMEM_OK)
        shut(mapper);
    return status;
}

/* Not a refusal of the method: the machine has run out of something, or the GPU has failed. A lost
 * Vulkan device does not count. */
static bool is_of_the_machine(gpumem_status status) {
    return status == GPUMEM_ERROR_OUT_OF_MEMORY || status == GPUMEM_ERROR_OUT_OF_HOST_MEMORY ||
           (status == GPUMEM_ERROR_DEVICE_FAULT && !gpumem_last_error()->vulkan_code);
}

/* ---- All of them ----------------------------------------------------------------------------- */

static gpumem_status open_first(struct gm_mapper *mapper, CUstream stream) {
    static const struct gm_mapper_ops *const all[] = {&gm_mapper_coherent, &gm_mapper_vulkan_import,
                                                      &gm_mapper_dma_buf, &gm_mapper_vulkan_export,
                                                      &gm_mapper_descriptor};
    const struct gm_mapper_wishes *wishes = &mapper->wishes;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        gpumem_mapped_method method = all[i]->method;
        if (wishes->strict && wishes->method != method)
            continue;
        if (method < wishes->method || (wishes->views && !all[i]->map))
            continue;
        gpumem_status status = open_one(mapper, all[i], stream);
        if (status == GPUMEM_OK)
            gm_engine_open(&mapper->engine, mapper->device, method, mapper->coherent);
        if (status == GPUMEM_OK || is_of_the_machine(status))
            return status;
        refuse(mapper, method, gpumem_last_error()->message);
    }
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "no mapping for the CPU: %s",
                   mapper->refusals[0] ? mapper->refusals : "no such method");
}

gpumem_status gm_mapper_open(struct gm_mapper *mapper, gpumem_device *device,
                             const struct gm_mapper_wishes *wishes) {
    CUstream stream = NULL;
    *mapper = (struct gm_mapper){.device = device, .wishes = *wishes};
    gpumem_status status = gm_vmm_supported(device);
    if (status != GPUMEM_OK)
        return status;
    CUresult result = device->cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    status = result == CUDA_SUCCESS
                 ? open_first(mapper, stream)
                 : gm_cu_fail(device->cu, result, "cuStreamCreate", "no stream for a trial");
    end_stream(device, stream);
    return status;
}

static gpumem_status open_coherent(struct gm_mapper *mapper) {
    mapper->coherent = true;
    mapper->atom = 1;
    return GPUMEM_OK;
}

const struct gm_mapper_ops gm_mapper_coherent = {
    .method = GPUMEM_MAPPED_COHERENT, .open = open_coherent, .try_out = gm_mapper_try_chunk};

void gm_mapper_open_host(struct gm_mapper *mapper, gpumem_device *device) {
    static const struct gm_mapper_ops host = {.method = GPUMEM_MAPPED_HOST};
    mapper->device = device;
    mapper->ops = &host;
    mapper->coherent = true;
    mapper->atom = 1;
}

void gm_mapper_close(struct gm_mapper *mapper) {
    gm_engine_close(&mapper->engine);
    shut(mapper);
}

gpumem_status gm_mapper_info(const struct gm_mapper *mapper, gpumem_mapped_info *info) {
    *info = (gpumem_mapped_info){.size = sizeof *info,
                                 .method = mapper->ops->method,
                                 .coherent = mapper->coherent,
                                 .atom = mapper->atom};
    if (mapper->engine.plans)
        info->copy_measured = gm_plan_now(mapper->engine.plans)->measured;
    memcpy(info->refusals, mapper->refusals, sizeof info->refusals);
    if (mapper->vulkan && gm_vulkan_get_facts(mapper->vulkan)->has_budget)
        return gm_vulkan_get_budget(mapper->vulkan, &info->budget_bytes, &info->budget_used);
    return GPUMEM_OK;
}
