/* Memory in the state dump and the leak report: in order of address, without the addresses. */
#include "softgpu/address/pagetable.h"
#include "softgpu/core/chapter.h"
#include "softgpu/core/handle.h"
#include "softgpu/core/text.h"
#include "softgpu/device/device.h"
#include "softgpu/memory/allocation.h"
#include "softgpu/memory/quarantine.h"
#include "softgpu/memory/vmm.h"

#include <stdio.h>

static const char *location_text(int device, char text[24]) {
    if (device < 0)
        return "host";
    snprintf(text, 24, "device %d", device);
    return text;
}

static void number_handle(uint64_t handle, void *object, void *user) {
    (void)handle;
    ((struct sg_memory *)object)->number = ++*(unsigned *)user;
}

static void dump_handle(uint64_t handle, void *object, void *user) {
    (void)handle;
    const struct sg_memory *memory = object;
    char where[24];
    sg_text_line(user, "handle %u: %zu bytes on %s, types %u%s, references %u, mappings %u",
                 memory->number, memory->phys->size, location_text(memory->phys->device, where),
                 (unsigned)memory->phys->prop.requestedHandleTypes,
                 memory->phys->imported ? ", imported" : "", memory->refs, memory->mappings);
}

/* "0:rw 1:r cpu:rw"; "-" for none. */
static void access_text(const struct sg_range *range, char text[128]) {
    static const char *const names[] = {"", "r", "w", "rw"};
    sg_rights rights = sg_table_get(range->start, NULL);
    int length = 0;
    for (int device = 0; device < SG_MAX_DEVICES; device++) {
        unsigned own = rights >> (2 * device) & 3u;
        if (own)
            length += snprintf(text + length, (size_t)(128 - length), "%s%d:%s", length ? " " : "",
                               device, names[own]);
    }
    if (range->cpu_rights)
        length += snprintf(text + length, (size_t)(128 - length), "%scpu:%s", length ? " " : "",
                           names[range->cpu_rights & 3u]);
    if (length == 0)
        snprintf(text, 128, "-");
}

static void dump_mappings(struct sg_text *text, const struct sg_reservation *reservation,
                          unsigned number) {
    CUdeviceptr start = reservation->node.key, end = start + reservation->size;
    for (struct sg_range *range = sg_mapping_first(start, reservation->size); range;
         range = sg_mapping_next(range, end)) {
        char access[128];
        access_text(range, access);
        sg_text_line(text, "mapping in reservation %u at %llu: %zu bytes of handle %u, access %s",
                     number, (unsigned long long)(range->start - start), range->size,
                     ((struct sg_memory *)range->owner)->number, access);
    }
}

static void allocation_lines(struct sg_text *text, bool with_state) {
    unsigned number = 0;
    for (struct sg_range *range = sg_range_from(0); range; range = sg_range_next(range)) {
        const char *kind = range->variable ? NULL : range->ops->name;
        char where[24];
        if (!kind)
            continue;
        sg_text_address(text, range->start, range->origin, range->context);
        sg_text_line(text, "%s %u: %zu bytes on %s, flags %u%s", kind, ++number, range->size,
                     location_text(range->device, where), range->flags,
                     range->sync_memops ? ", SYNC_MEMOPS" : "");
        if (range->ops->dump && with_state)
            range->ops->dump(text, range);
    }
}

static void dump(struct sg_text *text) {
    unsigned number = 0;
    for (int i = 0; i < sg_device_count(); i++)
        sg_text_line(text, "memory of device %d: %llu bytes in use", i,
                     (unsigned long long)sg_memory_used(i));
    sg_handle_each(SG_KIND_MEMORY, number_handle, &number);
    sg_handle_each(SG_KIND_MEMORY, dump_handle, text);
    number = 0;
    for (struct sg_reservation *at = sg_reservation_next(NULL); at; at = sg_reservation_next(at)) {
        sg_text_line(text, "reservation %u: %zu bytes", ++number, at->size);
        dump_mappings(text, at, number);
    }
    allocation_lines(text, true);
}

static void leaked_handle(uint64_t handle, void *object, void *user) {
    const struct sg_memory *memory = object;
    char where[24];
    if (!memory->refs)
        return;
    sg_text_handle(user, handle, NULL);
    sg_text_line(user, "memory handle of %zu bytes on %s, %u references not released",
                 memory->phys->size, location_text(memory->phys->device, where), memory->refs);
}

static void leaks(struct sg_text *text) {
    sg_handle_each(SG_KIND_MEMORY, leaked_handle, text);
    for (struct sg_reservation *at = sg_reservation_next(NULL); at; at = sg_reservation_next(at)) {
        sg_text_address(text, at->node.key, at->origin, NULL);
        sg_text_line(text, "reservation of %zu bytes of addresses%s", at->size,
                     sg_mapping_first(at->node.key, at->size) ? ", with mappings" : "");
    }
    allocation_lines(text, false);
}

static uint64_t reclaim(int device, uint64_t bytes) {
    (void)device, (void)bytes;
    return sg_quarantine_empty(NULL);
}

const struct sg_chapter sg_memory_chapter = {
    .dump = dump,
    .leaks = leaks,
    .leak_kind = SG_LEAK_MEMORY,
    .reclaim = reclaim,
    .context_end = {[SG_END_MEMORY] = sg_memory_context_end},
};
