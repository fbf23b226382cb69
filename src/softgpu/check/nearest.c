#include "softgpu/check/nearest.h"

#include "softgpu/address/range.h"
#include "softgpu/check/areas.h"
#include "softgpu/core/config.h"
#include "softgpu/core/site.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FAR ((uint64_t)1 << 30)

/* Ends the line with the call that made the allocation, if that is known. */
static void add_site(uint32_t maker, char *text, size_t size) {
    char site[512];
    size_t used = strlen(text);
    sg_site_text(maker, site, sizeof site);
    snprintf(text + used, size - used, "%s%s\n", site[0] ? ", made by " : "", site);
}

static void say_nearest(uint64_t address, char *text, size_t size) {
    struct sg_range *after = sg_range_from(address), *before = sg_range_before(address);
    uint64_t behind = before ? address - (before->start + before->size) : UINT64_MAX;
    uint64_t ahead = after ? after->start - address : UINT64_MAX;
    const struct sg_range *nearest = behind <= ahead ? before : after;
    uint64_t distance = nearest == before ? behind : ahead;
    if (!nearest || distance > FAR) {
        snprintf(text, size, "  no allocation within 1 GiB of it\n");
        return;
    }
    snprintf(text, size,
             "  %" PRIu64 " bytes %s an allocation of %zu bytes at 0x%" PRIx64 ", the nearest one",
             distance, nearest == before ? "behind the end of" : "in front of", nearest->size,
             (uint64_t)nearest->start);
    add_site(nearest->origin.site, text, size);
}

/* Arrays have no ranges. */
static bool say_array(uint64_t address, char *text, size_t size) {
    sg_areas_lock();
    const struct sg_area *area = sg_area_find(address);
    bool found = area && area->array;
    uint32_t site = found ? area->site : 0;
    if (found)
        snprintf(text, size, "  at byte %" PRIu64 " of an array of %zu bytes",
                 (uint64_t)(address - area->start), area->size);
    sg_areas_unlock();
    if (found)
        add_site(site, text, size);
    return found;
}

bool sg_block_text(uint64_t address, char *text, size_t size) {
    sg_areas_lock();
    const struct sg_area *area = sg_area_before(address);
    uint64_t behind = area ? address - area->start : 0;
    bool found = area && area->block && behind < area->size + SG_RED_ZONE;
    if (found && behind >= area->size)
        snprintf(text, size,
                 "  %" PRIu64 " bytes behind the end of %zu bytes at 0x%" PRIx64
                 " that a kernel has allocated\n",
                 behind - area->size, area->size, (uint64_t)area->start);
    else if (found)
        snprintf(text, size,
                 "  %" PRIu64 " bytes before the end of %zu bytes at 0x%" PRIx64
                 " that a kernel has allocated\n",
                 area->size - behind, area->size, (uint64_t)area->start);
    sg_areas_unlock();
    return found;
}

void sg_nearest_text(uint64_t address, char *text, size_t size) {
    struct sg_range_past past;
    if (say_array(address, text, size) || sg_block_text(address, text, size))
        return;
    const struct sg_range *range = sg_range_find(address);
    if (range) {
        snprintf(text, size,
                 "  %" PRIu64 " bytes before the end of an allocation of %zu bytes at 0x%" PRIx64,
                 (uint64_t)range->start + range->size - address, range->size,
                 (uint64_t)range->start);
        add_site(range->origin.site, text, size);
    } else if (sg_range_was(address, &past)) {
        snprintf(text, size,
                 "  %" PRIu64 " bytes inside of an allocation of %zu bytes at 0x%" PRIx64
                 " that has been freed\n",
                 (uint64_t)(address - past.start), past.size, (uint64_t)past.start);
    } else {
        say_nearest(address, text, size);
    }
}
