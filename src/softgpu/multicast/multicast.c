#include "softgpu/multicast/multicast.h"

#include "softgpu/address/epoch.h"
#include "softgpu/address/pagetable.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/chapter.h"
#include "softgpu/core/config.h"
#include "softgpu/core/handle.h"
#include "softgpu/core/text.h"
#include "softgpu/device/device.h"
#include "softgpu/memory/vmm.h"

#include <stdlib.h>
#include <string.h>

struct binding {
    struct binding *next;
    int device;
    size_t offset, size;
    struct sg_phys *memory; /* referenced */
};

/* More than any address space has: the lists of pages of such an object would not be made. */
#define LARGEST ((size_t)1 << 47)

typedef _Atomic(unsigned char *) page_bytes;

struct team {
    struct sg_retired retired;
    struct sg_phys phys;
    unsigned number; /* place in `teams` */
    unsigned wanted, count;
    int devices[SG_MAX_DEVICES];
    size_t pages;
    page_bytes *bytes[SG_MAX_DEVICES]; /* of each member, by page; NULL where nothing is bound */
    struct binding *bindings;
};

/* Read without the lock; a team ends when no running work can have it. */
static _Atomic(struct team *) teams[SG_TEAM_LIMIT];
static atomic_uint live;
static pthread_cond_t joined = PTHREAD_COND_INITIALIZER;

static struct team *team_of_phys(const struct sg_phys *phys) {
    return (struct team *)(void *)((char *)(uintptr_t)phys - offsetof(struct team, phys));
}

/* The team of a handle, or NULL when it is another memory's. */
static struct team *team_of(CUmemGenericAllocationHandle handle) {
    struct sg_memory *memory = sg_memory_from_handle(handle);
    return memory && memory->phys->kind == SG_PHYS_TEAM ? team_of_phys(memory->phys) : NULL;
}

static int member(const struct team *team, int device) {
    for (unsigned i = 0; i < team->count; i++)
        if (team->devices[i] == device)
            return (int)i;
    return -1;
}

bool sg_multicast_has_device(const struct sg_phys *phys, int device) {
    return member(team_of_phys(phys), device) >= 0;
}

/* ---- Stores, without the lock --------------------------------------------------------------- */

static struct team *team_at(CUdeviceptr address, size_t *page, sg_rights *rights) {
    unsigned number;
    if (atomic_load_explicit(&live, memory_order_relaxed) == 0 ||
        !sg_table_team(address, &number, page, rights))
        return NULL;
    return atomic_load_explicit(&teams[number], memory_order_acquire);
}

static unsigned char *bytes_of(const struct team *team, unsigned index, size_t page) {
    return atomic_load_explicit(&team->bytes[index][page], memory_order_acquire);
}

unsigned char *sg_multicast_bytes(int device, CUdeviceptr address, size_t want, size_t *span) {
    size_t page, inner = address & (SG_PAGE - 1);
    sg_rights rights, need = sg_rights_of(device, SG_WRITE);
    const struct team *team = team_at(address, &page, &rights);
    if (!team || (rights & need) != need)
        return NULL;
    for (unsigned i = 0; i < team->count; i++)
        if (!bytes_of(team, i, page))
            return NULL;
    *span = want < SG_PAGE - inner ? want : SG_PAGE - inner;
    return bytes_of(team, 0, page) + inner;
}

void sg_multicast_spread(CUdeviceptr address, const unsigned char *bytes, size_t size) {
    size_t page;
    sg_rights rights;
    const struct team *team = team_at(address, &page, &rights);
    for (unsigned i = 1; team && i < team->count; i++) {
        unsigned char *to = bytes_of(team, i, page);
        if (to)
            memcpy(to + (address & (SG_PAGE - 1)), bytes, size);
    }
}

/* ---- Life of an object ---------------------------------------------------------------------- */

static unsigned free_number(void) {
    unsigned number = 0;
    while (number < SG_TEAM_LIMIT && atomic_load(&teams[number]))
        number++;
    return number;
}

static void free_team(struct team *team) {
    for (unsigned i = 0; i < team->wanted; i++)
        free(team->bytes[i]);
    free(team);
}

static struct team *new_team(const CUmulticastObjectProp *prop) {
    struct team *team = calloc(1, sizeof *team);
    if (!team)
        return NULL;
    team->wanted = prop->numDevices;
    team->pages = prop->size / SG_PAGE;
    for (unsigned i = 0; i < team->wanted; i++) {
        team->bytes[i] = calloc(team->pages, sizeof *team->bytes[i]);
        if (!team->bytes[i]) {
            free_team(team);
            return NULL;
        }
    }
    team->phys = (struct sg_phys){.kind = SG_PHYS_TEAM,
                                  .refs = 1,
                                  .size = prop->size,
                                  .file = GM_NO_KEPT_FILE,
                                  .imported = true};
    return team;
}

static CUresult check_prop(const CUmulticastObjectProp *prop) {
    if (!prop)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_device(0)->multicast)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (prop->numDevices == 0 || prop->numDevices > (unsigned)sg_device_count() || prop->flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    /* An object of several processes would need members in each. */
    return prop->handleTypes == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult sg_cuMulticastCreate(CUmemGenericAllocationHandle *mcHandle,
                              const CUmulticastObjectProp *prop) {
    CUresult result = check_prop(prop);
    if (result != CUDA_SUCCESS)
        return result;
    if (!mcHandle || !sg_page_aligned(0, prop->size))
        return CUDA_ERROR_INVALID_VALUE;
    unsigned number = prop->size <= LARGEST ? free_number() : SG_TEAM_LIMIT;
    struct team *team = number < SG_TEAM_LIMIT ? new_team(prop) : NULL;
    if (!team)
        return CUDA_ERROR_OUT_OF_MEMORY;
    team->number = number;
    atomic_store_explicit(&teams[number], team, memory_order_release);
    atomic_fetch_add(&live, 1);
    return sg_memory_new(&team->phys, mcHandle);
}

static void unbind(struct team *team, struct binding **link) {
    struct binding *binding = *link;
    int index = member(team, binding->device);
    for (size_t i = 0; i < binding->size / SG_PAGE; i++)
        atomic_store_explicit(&team->bytes[index][binding->offset / SG_PAGE + i], NULL,
                              memory_order_release);
    *link = binding->next;
    sg_phys_unref(binding->memory);
    free(binding);
}

static void retire(struct sg_retired *retired) {
    struct team *team = (struct team *)retired;
    atomic_store_explicit(&teams[team->number], NULL, memory_order_release);
    atomic_fetch_sub(&live, 1);
    free_team(team);
}

void sg_multicast_end(struct sg_phys *phys) {
    struct team *team = team_of_phys(phys);
    while (team->bindings)
        unbind(team, &team->bindings);
    sg_retire(&team->retired, retire);
}

/* ---- Devices -------------------------------------------------------------------------------- */

CUresult sg_cuMulticastAddDevice(CUmemGenericAllocationHandle mcHandle, CUdevice dev) {
    struct team *team = team_of(mcHandle);
    if (!team)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (team->count == team->wanted || member(team, dev) >= 0)
        return CUDA_ERROR_INVALID_VALUE;
    team->devices[team->count++] = dev;
    if (team->count == 1)
        team->phys.device = dev;
    pthread_cond_broadcast(&joined);
    return CUDA_SUCCESS;
}

/* "Any calls ... will block until all devices have been added." */
bool sg_multicast_complete(const struct sg_phys *phys, bool *told) {
    const struct team *team = team_of_phys(phys);
    if (team->count == team->wanted)
        return true;
    if (!*told)
        sg_log(SG_LOG_WARNING, "waiting until %u more devices are added to a multicast object",
               team->wanted - team->count);
    *told = true;
    sg_wait(&joined, 10000000);
    return false;
}

/* ---- Memory --------------------------------------------------------------------------------- */

void sg_multicast_map(const struct sg_phys *phys, CUdeviceptr address, size_t size) {
    sg_table_map_team(address, size, team_of_phys(phys)->number);
}

static bool overlaps(const struct team *team, int device, size_t offset, size_t size) {
    for (const struct binding *at = team->bindings; at; at = at->next)
        if (at->device == device && offset < at->offset + at->size && at->offset < offset + size)
            return true;
    return false;
}

static bool inside(size_t offset, size_t size, size_t whole) {
    return sg_page_aligned(offset, size) && offset <= whole && size <= whole - offset;
}

static CUresult bind(struct team *team, size_t offset, struct sg_phys *memory, size_t inner,
                     size_t size) {
    int index = member(team, memory->device);
    if (index < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!inside(offset, size, team->phys.size) || !inside(inner, size, memory->size) ||
        overlaps(team, memory->device, offset, size))
        return CUDA_ERROR_INVALID_VALUE;
    struct binding *binding = malloc(sizeof *binding);
    if (!binding)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *binding = (struct binding){.next = team->bindings,
                                .device = memory->device,
                                .offset = offset,
                                .size = size,
                                .memory = memory};
    team->bindings = binding;
    sg_phys_ref(memory);
    for (size_t i = 0; i < size / SG_PAGE; i++)
        atomic_store_explicit(&team->bytes[index][offset / SG_PAGE + i],
                              memory->host + inner + i * SG_PAGE, memory_order_release);
    return CUDA_SUCCESS;
}

CUresult sg_cuMulticastBindMem(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
                               CUmemGenericAllocationHandle memHandle, size_t memOffset,
                               size_t size, unsigned long long flags) {
    struct team *team;
    struct sg_memory *memory;
    bool told = false;
    do {
        if (atomic_load(&sg_exiting))
            return CUDA_ERROR_DEINITIALIZED;
        team = team_of(mcHandle);
        memory = sg_memory_from_handle(memHandle);
        bool plain = memory && memory->phys->kind != SG_PHYS_TEAM && memory->phys->device >= 0;
        if (!team || !plain || flags != 0)
            return CUDA_ERROR_INVALID_VALUE;
    } while (!sg_multicast_complete(&team->phys, &told));
    return bind(team, mcOffset, memory->phys, memOffset, size);
}

CUresult sg_cuMulticastBindAddr(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
                                CUdeviceptr memptr, size_t size, unsigned long long flags) {
    struct team *team;
    const struct sg_range *range;
    bool told = false;
    do {
        if (atomic_load(&sg_exiting))
            return CUDA_ERROR_DEINITIALIZED;
        team = team_of(mcHandle);
        range = sg_range_find(memptr);
        /* "must have been allocated via cuMemCreate or cudaMallocAsync" */
        bool known = range && range->device >= 0 && range->phys->kind != SG_PHYS_TEAM &&
                     (range->kind == SG_RANGE_MAPPING || range->kind == SG_RANGE_POOL);
        if (!team || !known || flags != 0 || size > range->start + range->size - memptr)
            return CUDA_ERROR_INVALID_VALUE;
    } while (!sg_multicast_complete(&team->phys, &told));
    return bind(team, mcOffset, range->phys, range->phys_offset + (size_t)(memptr - range->start),
                size);
}

/* Offset and size "must match the corresponding values specified during the bind call". */
CUresult sg_cuMulticastUnbind(CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset,
                              size_t size) {
    struct team *team = team_of(mcHandle);
    if (!team)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_device(dev) || member(team, dev) < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    for (struct binding **link = &team->bindings; *link; link = &(*link)->next)
        if ((*link)->device == dev && (*link)->offset == mcOffset && (*link)->size == size) {
            unbind(team, link);
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

/* Pages are softgpu's only unit, so both granularities are one. */
CUresult sg_cuMulticastGetGranularity(size_t *granularity, const CUmulticastObjectProp *prop,
                                      CUmulticastGranularity_flags option) {
    if (!sg_device(0)->multicast)
        return CUDA_ERROR_NOT_SUPPORTED;
    /* As recorded on two H200s, of the properties no more is asked than that there are any. */
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
    if (memory->phys->kind != SG_PHYS_TEAM)
        return;
    const struct team *team = team_of_phys(memory->phys);
    sg_text_line(text, "multicast object of handle %u: %zu bytes, %u of %u devices", memory->number,
                 team->phys.size, team->count, team->wanted);
    for (const struct binding *at = team->bindings; at; at = at->next)
        sg_text_line(text, "bound to handle %u at %zu: %zu bytes of device %d", memory->number,
                     at->offset, at->size, at->device);
}

static void dump_objects(struct sg_text *text) {
    sg_handle_each(SG_KIND_MEMORY, dump, text);
}

const struct sg_chapter sg_multicast_chapter = {.dump = dump_objects};
