/*
 * Multicast objects: a store through a mapping of one reaches the memory that each member, a
 * device, has bound there.
 *
 * An object is physical memory without bytes (address/object.h), so handles, mappings and access
 * rights work as for all other memory. For each page it knows the bytes of each member. Only stores
 * work: what a load would return is undefined, so copies from it are refused, and everything else
 * that reads it faults.
 */
#include "softgpu/address/epoch.h"
#include "softgpu/address/object.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/chapter.h"
#include "softgpu/core/config.h"
#include "softgpu/core/handle.h"
#include "softgpu/core/text.h"
#include "softgpu/device/device.h"
#include "softgpu/memory/vmm.h"

#include <stdlib.h>
#include <string.h>

/* One call's; in several parts where the memory lies in several, each with a binding of its own. */
struct binding {
    struct binding *next;
    int device;
    size_t offset, size;
    size_t whole;           /* the call's size, at its first part; 0 at the others */
    struct sg_phys *memory; /* referenced */
};

/* Larger than any address space: the page lists of such an object could not be made. */
#define LARGEST ((size_t)1 << 47)

typedef _Atomic(unsigned char *) page_bytes;

struct object {
    struct sg_retired retired;
    struct sg_phys phys;
    unsigned wanted, count;
    int devices[SG_MAX_DEVICES];
    size_t pages;
    page_bytes *bytes[SG_MAX_DEVICES]; /* of each member, by page; NULL where nothing is bound */
    struct binding *bindings;
};

static pthread_cond_t joined = PTHREAD_COND_INITIALIZER;

static const struct sg_phys_ops multicast_ops;

static struct object *object_of_phys(const struct sg_phys *phys) {
    return (struct object *)(void *)((char *)(uintptr_t)phys - offsetof(struct object, phys));
}

/* The object of a handle, or NULL if the handle is for other memory. */
static struct object *object_of(CUmemGenericAllocationHandle handle) {
    struct sg_memory *memory = sg_memory_from_handle(handle);
    return memory && memory->phys->ops == &multicast_ops ? object_of_phys(memory->phys) : NULL;
}

static int member(const struct object *object, int device) {
    for (unsigned i = 0; i < object->count; i++)
        if (object->devices[i] == device)
            return (int)i;
    return -1;
}

static bool has_device(const struct sg_phys *phys, int device) {
    return member(object_of_phys(phys), device) >= 0;
}

/* ---- Stores, without the lock --------------------------------------------------------------- */

static unsigned char *bytes_of(const struct object *object, unsigned index, size_t page) {
    return atomic_load_explicit(&object->bytes[index][page], memory_order_acquire);
}

/* The first member's bytes; NULL when any member has bound nothing there. */
static unsigned char *first_bytes(const struct sg_phys *phys, size_t page) {
    const struct object *object = object_of_phys(phys);
    for (unsigned i = 0; i < object->count; i++)
        if (!bytes_of(object, i, page))
            return NULL;
    return bytes_of(object, 0, page);
}

static void spread(const struct sg_phys *phys, size_t page, size_t inner,
                   const unsigned char *bytes, size_t size) {
    const struct object *object = object_of_phys(phys);
    for (unsigned i = 1; i < object->count; i++) {
        unsigned char *to = bytes_of(object, i, page);
        if (to)
            memcpy(to + inner, bytes, size);
    }
}

/* ---- Life of an object ---------------------------------------------------------------------- */

static void free_object(struct object *object) {
    for (unsigned i = 0; i < object->wanted; i++)
        free(object->bytes[i]);
    free(object);
}

static struct object *new_object(const CUmulticastObjectProp *prop) {
    struct object *object = calloc(1, sizeof *object);
    if (!object)
        return NULL;
    object->wanted = prop->numDevices;
    object->pages = prop->size / SG_PAGE;
    for (unsigned i = 0; i < object->wanted; i++) {
        object->bytes[i] = calloc(object->pages, sizeof *object->bytes[i]);
        if (!object->bytes[i]) {
            free_object(object);
            return NULL;
        }
    }
    object->phys = (struct sg_phys){.kind = SG_PHYS_OBJECT,
                                    .ops = &multicast_ops,
                                    .refs = 1,
                                    .size = prop->size,
                                    .file = GM_NO_KEPT_FILE,
                                    .imported = true};
    return object;
}

static CUresult check_prop(const CUmulticastObjectProp *prop) {
    if (!prop)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_device(0)->multicast)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (prop->numDevices == 0 || prop->numDevices > (unsigned)sg_device_count() || prop->flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    /* An object of several processes would need members in each of them. */
    return prop->handleTypes == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult sg_cuMulticastCreate(CUmemGenericAllocationHandle *mcHandle,
                              const CUmulticastObjectProp *prop) {
    CUresult result = check_prop(prop);
    if (result != CUDA_SUCCESS)
        return result;
    if (!mcHandle || !sg_page_aligned(0, prop->size))
        return CUDA_ERROR_INVALID_VALUE;
    struct object *object = prop->size <= LARGEST ? new_object(prop) : NULL;
    if (!object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!sg_object_begin(&object->phys)) {
        free_object(object);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return sg_memory_new(&object->phys, mcHandle);
}

static void unbind(struct object *object, struct binding **link) {
    struct binding *binding = *link;
    int index = member(object, binding->device);
    for (size_t i = 0; i < binding->size / SG_PAGE; i++)
        atomic_store_explicit(&object->bytes[index][binding->offset / SG_PAGE + i], NULL,
                              memory_order_release);
    *link = binding->next;
    sg_phys_unref(binding->memory);
    free(binding);
}

static void retire(struct sg_retired *retired) {
    struct object *object = (struct object *)retired;
    sg_object_end(&object->phys);
    free_object(object);
}

static void end(struct sg_phys *phys) {
    struct object *object = object_of_phys(phys);
    while (object->bindings)
        unbind(object, &object->bindings);
    sg_retire(&object->retired, retire);
}

/* ---- Devices -------------------------------------------------------------------------------- */

CUresult sg_cuMulticastAddDevice(CUmemGenericAllocationHandle mcHandle, CUdevice dev) {
    struct object *object = object_of(mcHandle);
    if (!object)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (object->count == object->wanted || member(object, dev) >= 0)
        return CUDA_ERROR_INVALID_VALUE;
    object->devices[object->count++] = dev;
    if (object->count == 1)
        object->phys.device = dev;
    pthread_cond_broadcast(&joined);
    return CUDA_SUCCESS;
}

/* "Any calls ... will block until all devices have been added." */
static bool is_complete(const struct sg_phys *phys, bool *told) {
    const struct object *object = object_of_phys(phys);
    if (object->count == object->wanted)
        return true;
    if (!*told)
        sg_log(SG_LOG_WARNING, "waiting until %u more devices are added to a multicast object",
               object->wanted - object->count);
    *told = true;
    sg_wait(&joined, 10000000);
    return false;
}

static const struct sg_phys_ops multicast_ops = {
    .end = end,
    .ready = is_complete,
    .reaches = has_device,
    .bytes = first_bytes,
    .spread = spread,
};

/* ---- Memory --------------------------------------------------------------------------------- */

static bool overlaps(const struct object *object, int device, size_t offset, size_t size) {
    for (const struct binding *at = object->bindings; at; at = at->next)
        if (at->device == device && offset < at->offset + at->size && at->offset < offset + size)
            return true;
    return false;
}

static bool inside(size_t offset, size_t size, size_t whole) {
    return sg_page_aligned(offset, size) && offset <= whole && size <= whole - offset;
}

static CUresult bind(struct object *object, size_t offset, struct sg_phys *memory, size_t inner,
                     size_t size) {
    int index = member(object, memory->device);
    if (index < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!inside(offset, size, object->phys.size) || !inside(inner, size, memory->size) ||
        overlaps(object, memory->device, offset, size))
        return CUDA_ERROR_INVALID_VALUE;
    struct binding *binding = malloc(sizeof *binding);
    if (!binding)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *binding = (struct binding){.next = object->bindings,
                                .device = memory->device,
                                .offset = offset,
                                .size = size,
                                .whole = size,
                                .memory = memory};
    object->bindings = binding;
    sg_phys_ref(memory);
    for (size_t i = 0; i < size / SG_PAGE; i++)
        atomic_store_explicit(&object->bytes[index][offset / SG_PAGE + i],
                              memory->host + inner + i * SG_PAGE, memory_order_release);
    return CUDA_SUCCESS;
}

CUresult sg_cuMulticastBindMem(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
                               CUmemGenericAllocationHandle memHandle, size_t memOffset,
                               size_t size, unsigned long long flags) {
    struct object *object;
    struct sg_memory *memory;
    bool told = false;
    do {
        if (atomic_load(&sg_exiting))
            return CUDA_ERROR_DEINITIALIZED;
        object = object_of(mcHandle);
        memory = sg_memory_from_handle(memHandle);
        bool plain = memory && !memory->phys->ops && memory->phys->device >= 0;
        if (!object || !plain || flags != 0)
            return CUDA_ERROR_INVALID_VALUE;
    } while (!is_complete(&object->phys, &told));
    return bind(object, mcOffset, memory->phys, memOffset, size);
}

/* All or nothing. */
static CUresult bind_parts(struct object *object, size_t offset, const struct sg_range *range,
                           CUdeviceptr address, size_t size) {
    size_t done = 0, count = 0, inner;
    do {
        struct sg_phys *memory = sg_range_phys_at(range, address + done, &inner);
        size_t left = size - done, part = memory->size - inner;
        part = part < left ? part : left;
        CUresult result = bind(object, offset + done, memory, inner, part);
        if (result != CUDA_SUCCESS) {
            for (; count > 0; count--)
                unbind(object, &object->bindings);
            return result;
        }
        object->bindings->whole = count++ == 0 ? size : 0;
        done += part;
    } while (done < size);
    return CUDA_SUCCESS;
}

CUresult sg_cuMulticastBindAddr(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
                                CUdeviceptr memptr, size_t size, unsigned long long flags) {
    struct object *object;
    const struct sg_range *range;
    bool told = false;
    do {
        if (atomic_load(&sg_exiting))
            return CUDA_ERROR_DEINITIALIZED;
        object = object_of(mcHandle);
        range = sg_range_find(memptr);
        /* "must have been allocated via cuMemCreate or cudaMallocAsync" */
        bool known = range && range->device >= 0 && !range->phys->ops && range->ops->bindable;
        if (!object || !known || flags != 0 || size > range->start + range->size - memptr)
            return CUDA_ERROR_INVALID_VALUE;
    } while (!is_complete(&object->phys, &told));
    CUresult result = bind_parts(object, mcOffset, range, memptr, size);
    if (result == CUDA_SUCCESS)
        sg_range_expose(memptr, size);
    return result;
}

/* Offset and size "must match the corresponding values specified during the bind call". */
CUresult sg_cuMulticastUnbind(CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset,
                              size_t size) {
    struct object *object = object_of(mcHandle);
    if (!object)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_device(dev) || member(object, dev) < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    const struct binding *first = object->bindings;
    while (first && (first->device != dev || first->offset != mcOffset || first->whole != size))
        first = first->next;
    if (!first || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (struct binding **link = &object->bindings; *link;)
        if ((*link)->device == dev && (*link)->offset - mcOffset < size)
            unbind(object, link);
        else
            link = &(*link)->next;
    return CUDA_SUCCESS;
}

/* Pages are softgpu's only unit, so both granularities are the same. */
CUresult sg_cuMulticastGetGranularity(size_t *granularity, const CUmulticastObjectProp *prop,
                                      CUmulticastGranularity_flags option) {
    if (!sg_device(0)->multicast)
        return CUDA_ERROR_NOT_SUPPORTED;
    /* As recorded on two H200s, the only check of the properties is that there are some. */
    if (!granularity || !prop ||
        (option != CU_MULTICAST_GRANULARITY_MINIMUM &&
         option != CU_MULTICAST_GRANULARITY_RECOMMENDED))
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = SG_PAGE;
    return CUDA_SUCCESS;
}

/* ---- The state dump ------------------------------------------------------------------------- */

static void dump(uint64_t handle, void *object, void *text) {
    (void)handle;
    const struct sg_memory *memory = object;
    if (memory->phys->ops != &multicast_ops)
        return;
    const struct object *multicast = object_of_phys(memory->phys);
    sg_text_line(text, "multicast object of handle %u: %zu bytes, %u of %u devices", memory->number,
                 multicast->phys.size, multicast->count, multicast->wanted);
    for (const struct binding *at = multicast->bindings; at; at = at->next)
        sg_text_line(text, "bound to handle %u at %zu: %zu bytes of device %d", memory->number,
                     at->offset, at->size, at->device);
}

static void dump_objects(struct sg_text *text) {
    sg_handle_each(SG_KIND_MEMORY, dump, text);
}

const struct sg_chapter sg_multicast_chapter = {.dump = dump_objects};
