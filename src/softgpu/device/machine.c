/* How much memory this machine can give: the default size of a device, and what else is available.
 */
#include "base/host_memory.h"
#include "softgpu/device/profile.h"

#include <unistd.h>

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

uint64_t sg_machine_half(void) {
    struct gm_host_memory memory;
    gm_host_memory_read(&memory);
    return least(memory.machine, memory.groups) / 2;
}

uint64_t sg_machine_allows(uint64_t size, int count) {
    struct gm_host_memory memory;
    gm_host_memory_read(&memory);
    if (memory.groups_left == GM_HOST_MEMORY_UNKNOWN)
        return size;
    uint64_t allowed = least(size, memory.groups_left / 4 * 3 / (uint64_t)(count > 0 ? count : 1));
    return allowed > SG_PAGE ? allowed : SG_PAGE;
}

uint64_t sg_machine_pinned(uint64_t devices) {
    struct gm_host_memory memory;
    gm_host_memory_read(&memory);
    if (memory.machine == GM_HOST_MEMORY_UNKNOWN) /* without /proc */
        memory.machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (memory.groups_left == GM_HOST_MEMORY_UNKNOWN)
        return memory.machine;
    return least(memory.machine, memory.groups_left - least(devices, memory.groups_left / 4 * 3));
}

uint64_t sg_machine_left(uint64_t wanted) {
    static uint64_t trusted;
    if (wanted <= trusted) {
        trusted -= wanted;
        return UINT64_MAX;
    }
    struct gm_host_memory memory;
    gm_host_memory_read(&memory);
    uint64_t left = gm_host_memory_groups_give(&memory);
    trusted = left / 4;
    return left;
}

uint64_t sg_device_limit(uint64_t profile, uint64_t wanted, uint64_t machine, int count) {
    uint64_t share = machine / (uint64_t)(count > 0 ? count : 1);
    uint64_t limit = wanted ? wanted : profile < share ? profile : share;
    return limit > SG_PAGE ? limit : SG_PAGE;
}
