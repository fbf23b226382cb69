/* src/vulkan of a build without Vulkan's headers: no device opens, which says why, so that nothing
 * else here is ever reached with one. */
#include "vulkan/device.h"

#include "base/error.h"

#include <stdio.h>

#define WHY "this gpumem was built without Vulkan's headers (libvulkan-dev)"

static gpumem_status refuse(void) {
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, WHY);
}

gpumem_status gm_vulkan_open(const unsigned char uuid[16], struct gm_vulkan **vulkan, char *reason,
                             size_t size) {
    (void)uuid, (void)vulkan;
    if (reason && size > 0)
        snprintf(reason, size, "%s", WHY);
    return refuse();
}

void gm_vulkan_close(struct gm_vulkan *vulkan) {
    (void)vulkan;
}

const struct gm_vulkan_facts *gm_vulkan_get_facts(const struct gm_vulkan *vulkan) {
    static const struct gm_vulkan_facts none = {.library = "", .refusals = "", .name = ""};
    (void)vulkan;
    return &none;
}

gpumem_status gm_vulkan_get_budget(struct gm_vulkan *vulkan, uint64_t *budget, uint64_t *usage) {
    (void)vulkan, (void)budget, (void)usage;
    return refuse();
}

gpumem_status gm_vulkan_choose(struct gm_vulkan *vulkan, unsigned flags,
                               struct gm_vulkan_type *type) {
    (void)vulkan, (void)flags, (void)type;
    return refuse();
}

gpumem_status gm_vulkan_import(struct gm_vulkan *vulkan, int fd, uint64_t size, unsigned flags,
                               struct gm_vulkan_memory **memory) {
    (void)vulkan, (void)fd, (void)size, (void)flags, (void)memory;
    return refuse();
}

gpumem_status gm_vulkan_allocate(struct gm_vulkan *vulkan, uint64_t size, unsigned flags,
                                 struct gm_vulkan_memory **memory) {
    (void)vulkan, (void)size, (void)flags, (void)memory;
    return refuse();
}

gpumem_status gm_vulkan_export(struct gm_vulkan_memory *memory, int *fd) {
    (void)memory, (void)fd;
    return refuse();
}

gpumem_status gm_vulkan_map(struct gm_vulkan_memory *memory, void *place, void **host) {
    (void)memory, (void)place, (void)host;
    return refuse();
}

gpumem_status gm_vulkan_unmap(struct gm_vulkan_memory *memory) {
    (void)memory;
    return refuse();
}

gpumem_status gm_vulkan_flush(struct gm_vulkan_memory *memory, uint64_t offset, uint64_t size) {
    (void)memory, (void)offset, (void)size;
    return refuse();
}

gpumem_status gm_vulkan_invalidate(struct gm_vulkan_memory *memory, uint64_t offset,
                                   uint64_t size) {
    (void)memory, (void)offset, (void)size;
    return refuse();
}

uint64_t gm_vulkan_memory_size(const struct gm_vulkan_memory *memory) {
    (void)memory;
    return 0;
}

const struct gm_vulkan_type *gm_vulkan_memory_type(const struct gm_vulkan_memory *memory) {
    static const struct gm_vulkan_type none = {.atom = 1};
    (void)memory;
    return &none;
}

void *gm_vulkan_memory_host(const struct gm_vulkan_memory *memory) {
    (void)memory;
    return NULL;
}

gpumem_status gm_vulkan_free(struct gm_vulkan_memory *memory) {
    return memory ? refuse() : GPUMEM_OK;
}

size_t gm_vulkan_memory_count(const struct gm_vulkan *vulkan) {
    (void)vulkan;
    return 0;
}

size_t gm_vulkan_quarantined(const struct gm_vulkan *vulkan) {
    (void)vulkan;
    return 0;
}
