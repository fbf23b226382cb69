/* The virtual resource: each buffer is an extent, reserved for its capacity. */
#include "base/cancel.h"
#include "base/options.h"
#include "memory/device.h"
#include "memory/driver_error.h"
#include "memory/extent.h"
#include "memory/resource.h"
#include "memory/vmm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first export of a 1 GiB handle took 165 ms on an H200, of 512 MiB under 1 ms. */
#define DEFAULT_CHUNK_MAXIMUM  ((size_t)512 << 20)
#define DEFAULT_GROWTH_PERCENT 50u

/* No address of 57 bits, the most that processors have, is a multiple of more. */
#define MOST_ALIGNMENT ((size_t)1 << 56)

struct virtual_resource {
    gpumem_device *device;
    gpumem_resource *resource;
    gpumem_virtual_options options;
    gpumem_handle_type handle_type; /* what it settled on */
    int rdma, compression;          /* likewise */
    CUmemAllocationProp prop;
    size_t granularity, alignment;
    CUmemAccessDesc *access;
    size_t access_count;
    int host_accessible;
    char note[192];
};

static size_t round_up(size_t bytes, size_t unit) {
    return bytes > SIZE_MAX - unit ? 0 : (bytes + unit - 1) / unit * unit;
}

/* ---- Chunk sizes ----------------------------------------------------------------------------- */

/* What to add to `committed` when `needed` bytes are missing and `room` are left. */
static size_t wanted(const struct virtual_resource *v, size_t committed, size_t needed,
                     size_t room) {
    size_t bytes = needed;
    if (committed && !v->options.exact_growth) {
        size_t share;
        if (__builtin_mul_overflow(committed / 100, v->options.growth_percent, &share))
            share = SIZE_MAX;
        share = share / v->granularity * v->granularity;
        if (share > v->options.chunk_maximum)
            share = v->options.chunk_maximum;
        if (share > bytes)
            bytes = share;
    }
    bytes = round_up(bytes, v->options.chunk_minimum);
    return bytes == 0 || bytes > room ? room : bytes;
}

/* Appends `bytes` in chunks of the maximum and a rest. */
static gpumem_status append(struct virtual_resource *v, struct gm_extent *extent, size_t bytes) {
    size_t largest = v->options.chunk_maximum;
    size_t count = bytes / largest + (bytes % largest != 0);
    size_t few[16] = {0}, *sizes = few;
    if (count > sizeof few / sizeof few[0])
        sizes = calloc(count, sizeof *sizes);
    if (!sizes)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to plan %zu chunks", count);
    for (size_t i = 0, left = bytes; i < count; i++) {
        sizes[i] = left < largest ? left : largest;
        left -= sizes[i];
    }
    gpumem_status status = gm_extent_append(extent, &v->prop, sizes, count);
    if (sizes != few)
        free(sizes);
    return status;
}

/* Of the device, or of the host where the memory is the host's. */
static int is_short(gpumem_status status) {
    return status == GPUMEM_ERROR_OUT_OF_MEMORY || status == GPUMEM_ERROR_OUT_OF_HOST_MEMORY;
}

static gpumem_status commit(struct virtual_resource *v, struct gm_extent *extent, size_t bytes) {
    if (bytes <= extent->committed)
        return GPUMEM_OK;
    size_t room = extent->capacity - extent->committed;
    size_t needed = round_up(bytes - extent->committed, v->granularity);
    size_t more = wanted(v, extent->committed, needed, room);
    gpumem_status status = append(v, extent, more);
    if (is_short(status) && more > needed)
        status = append(v, extent, needed);
    return status;
}

/* ---- The resource's functions ---------------------------------------------------------------- */

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    struct virtual_resource *v = user;
    size_t asked = request->capacity ? request->capacity : v->options.capacity;
    if (asked < request->bytes)
        asked = request->bytes;
    size_t capacity = round_up(asked, v->granularity);
    if (!capacity)
        return gm_fail(GPUMEM_ERROR_OUT_OF_CAPACITY, "no address space has %zu bytes", asked);
    struct gm_extent *extent = calloc(1, sizeof *extent);
    if (!extent)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a virtual allocation");
    extent->device = v->device;
    extent->meter = &v->resource->meter;
    extent->access = v->access;
    extent->access_count = v->access_count;
    size_t alignment = request->alignment > v->alignment ? request->alignment : v->alignment;
    gpumem_status status = gm_extent_init(extent, capacity, alignment, v->options.addr_hint);
    if (status != GPUMEM_OK) {
        free(extent);
        return status;
    }
    status = commit(v, extent, request->bytes);
    if (status != GPUMEM_OK) {
        gm_extent_destroy(extent);
        free(extent);
        return status;
    }
    *allocation = (gpumem_allocation){
        .size = sizeof *allocation,
        .pointer = extent->address,
        .host_pointer = v->host_accessible ? (void *)(uintptr_t)extent->address : NULL,
        .bytes = request->bytes,
        .committed_bytes = extent->committed,
        .capacity = capacity,
        .cookie = extent,
    };
    return GPUMEM_OK;
}

static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    (void)user;
    (void)stream; /* nothing uses the memory any more: this resource is not stream-ordered */
    gm_extent_destroy(allocation->cookie);
    free(allocation->cookie);
}

/* The chunks that lie wholly behind `bytes`. */
static size_t surplus(const struct gm_extent *extent, size_t bytes) {
    size_t count = 0, end = extent->committed;
    while (count < extent->count && end - extent->chunks[extent->count - 1 - count].bytes >= bytes)
        end -= extent->chunks[extent->count - 1 - count++].bytes;
    return count;
}

static gpumem_status resize(void *user, gpumem_allocation *allocation, size_t bytes,
                            CUstream stream) {
    (void)stream;
    struct gm_extent *extent = allocation->cookie;
    gpumem_status status;
    if (bytes >= allocation->bytes)
        status = commit(user, extent, bytes);
    else
        status = gm_extent_drop(extent, surplus(extent, bytes));
    /* Also after a failure: a driver that refuses everything cannot be made to map again what it
     * unmapped, and the size must not reach past what is mapped. */
    allocation->committed_bytes = extent->committed;
    if (status == GPUMEM_OK)
        allocation->bytes = bytes;
    else if (allocation->bytes > extent->committed)
        allocation->bytes = extent->committed;
    return status;
}

static size_t chunks(const gpumem_allocation *allocation, const struct gm_chunk **out) {
    const struct gm_extent *extent = allocation->cookie;
    *out = extent->chunks;
    return extent->count;
}

static void properties(void *user, gpumem_resource_properties *out) {
    struct virtual_resource *v = user;
    out->device_accessible = v->options.self_access != GPUMEM_ACCESS_NONE || v->options.peer_count;
    out->host_accessible = v->host_accessible;
    out->can_resize = 1;
    out->exportable = v->handle_type == GPUMEM_HANDLE_POSIX_FD;
    out->location = v->options.location;
    out->handle_type = v->handle_type;
    out->granularity = v->granularity;
    out->chunk_maximum = v->options.chunk_maximum;
    memcpy(out->note, v->note, sizeof out->note);
}

static void destroy(void *user) {
    struct virtual_resource *v = user;
    free(v->access);
    free(v);
}

static const gpumem_resource_ops ops = {
    .size = sizeof ops,
    .kind = "virtual",
    .allocate = allocate,
    .deallocate = deallocate,
    .resize = resize,
    .properties = properties,
    .destroy = destroy,
};

/* ---- Settling what is possible --------------------------------------------------------------- */

static void add_note(struct virtual_resource *v, const char *text) {
    size_t used = strlen(v->note);
    snprintf(v->note + used, sizeof v->note - used, "%s%s", used ? "; " : "", text);
}

/* Creates and releases one granule: attributes promise what machines then refuse. */
static gpumem_status probe(struct virtual_resource *v, gpumem_handle_type type) {
    v->prop = gm_vmm_prop(v->device, v->options.location, v->options.numa_node, type, v->rdma,
                          v->compression);
    gpumem_status status =
        gm_vmm_granularity(v->device, &v->prop, v->options.granularity, &v->granularity);
    if (status != GPUMEM_OK)
        return status;
    CUmemGenericAllocationHandle handle;
    status = gm_vmm_create(v->device, &v->device->meter, v->granularity, &v->prop, &handle);
    if (status == GPUMEM_OK)
        gm_vmm_release(v->device, &v->device->meter, handle, v->granularity);
    return is_short(status) ? GPUMEM_OK : status; /* it is not refused */
}

static int refused(gpumem_status status) {
    return status == GPUMEM_ERROR_NOT_SUPPORTED || status == GPUMEM_ERROR_NOT_PERMITTED ||
           (status == GPUMEM_ERROR_DRIVER &&
            gpumem_last_error()->driver_code == CUDA_ERROR_INVALID_VALUE);
}

/* FABRIC, then POSIX_FD, then none, from the wanted one on. */
static gpumem_status settle_handle_type(struct virtual_resource *v) {
    static const gpumem_handle_type chain[] = {GPUMEM_HANDLE_FABRIC, GPUMEM_HANDLE_POSIX_FD,
                                               GPUMEM_HANDLE_NONE};
    const size_t count = sizeof chain / sizeof chain[0];
    size_t first = 0;
    while (first < count - 1 && chain[first] != v->options.handle_type)
        first++;
    gpumem_status status = GPUMEM_OK;
    for (size_t i = first; i < count; i++) {
        status = probe(v, chain[i]);
        v->handle_type = chain[i];
        if (status == GPUMEM_OK || !refused(status) || v->options.handle_strict)
            break;
        if (chain[i] == GPUMEM_HANDLE_NONE)
            break;
        char text[160];
        const gpumem_error *error = gpumem_last_error();
        snprintf(text, sizeof text, "no %s handles: %s answered %s",
                 gpumem_handle_type_name(chain[i]), error->call,
                 gm_code_name(v->device->cu, (CUresult)error->driver_code));
        add_note(v, text);
    }
    return status;
}

static void settle_wishes(struct virtual_resource *v) {
    v->rdma = v->options.gpu_direct_rdma;
    v->compression = v->options.compression;
    if (v->rdma && !gm_device_attribute(
                       v->device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0)) {
        v->rdma = 0;
        add_note(v, "no GPUDirect RDMA with virtual memory (attribute 0)");
    }
    if (v->compression &&
        !gm_device_attribute(v->device, CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, 0)) {
        v->compression = 0;
        add_note(v, "no compressible memory (attribute 0)");
    }
}

static gpumem_status check_enumerations(const gpumem_virtual_options *o) {
    gpumem_status status = gm_vmm_check_type(o->allocation_type, "virtual resource");
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE((unsigned)o->location <= GPUMEM_LOCATION_HOST_NUMA_CURRENT,
               "virtual resource: unknown location %d", (int)o->location);
    GM_REQUIRE((unsigned)o->handle_type <= GPUMEM_HANDLE_FABRIC,
               "virtual resource: unknown handle type %d", (int)o->handle_type);
    GM_REQUIRE((unsigned)o->granularity <= GPUMEM_GRANULARITY_MINIMUM,
               "virtual resource: unknown granularity %d", (int)o->granularity);
    GM_REQUIRE((unsigned)o->self_access <= GPUMEM_ACCESS_NONE &&
                   (unsigned)o->peer_access <= GPUMEM_ACCESS_NONE,
               "virtual resource: unknown access %d or %d", (int)o->self_access,
               (int)o->peer_access);
    GM_REQUIRE(!o->peer_count || o->peers, "virtual resource: peers is NULL, and peer_count %zu",
               o->peer_count);
    return gm_vmm_check_node(o->location, o->numa_node, "virtual resource");
}

/* Of what can be asked for nothing tells which alignments there are addresses for: one granule is
 * reserved and given back. */
static gpumem_status check_alignment(const struct virtual_resource *v) {
    CUdeviceptr address;
    if (v->alignment == v->granularity)
        return GPUMEM_OK;
    gpumem_status status =
        v->alignment <= MOST_ALIGNMENT
            ? gm_vmm_reserve(v->device, v->granularity, v->alignment, 0, &address)
            : GPUMEM_ERROR_OUT_OF_MEMORY;
    if (status == GPUMEM_OK)
        gm_vmm_unreserve(v->device, &v->device->meter, address, v->granularity);
    else if (refused(status) || status == GPUMEM_ERROR_OUT_OF_MEMORY)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                       "virtual resource: there are no addresses aligned to addr_align %zu",
                       v->alignment);
    return status;
}

static gpumem_status settle_sizes(struct virtual_resource *v) {
    gpumem_virtual_options *o = &v->options;
    size_t unit = v->granularity;
    if (!o->chunk_minimum)
        o->chunk_minimum = unit;
    if (!o->chunk_maximum)
        o->chunk_maximum =
            DEFAULT_CHUNK_MAXIMUM > o->chunk_minimum ? DEFAULT_CHUNK_MAXIMUM : o->chunk_minimum;
    if (!o->growth_percent)
        o->growth_percent = DEFAULT_GROWTH_PERCENT;
    GM_REQUIRE(o->chunk_minimum % unit == 0 && o->chunk_maximum % unit == 0,
               "virtual resource: chunk sizes %zu and %zu must be multiples of the granularity %zu",
               o->chunk_minimum, o->chunk_maximum, unit);
    GM_REQUIRE(o->chunk_minimum <= o->chunk_maximum,
               "virtual resource: chunk_minimum %zu is above chunk_maximum %zu", o->chunk_minimum,
               o->chunk_maximum);
    GM_REQUIRE((o->addr_align & (o->addr_align - 1)) == 0,
               "virtual resource: addr_align %zu is no power of two", o->addr_align);
    v->alignment = o->addr_align > unit ? o->addr_align : unit;
    GM_REQUIRE(o->addr_hint % v->alignment == 0,
               "virtual resource: addr_hint 0x%llx is no multiple of the alignment %zu",
               o->addr_hint, v->alignment);
    return check_alignment(v);
}

static void add_access(struct virtual_resource *v, CUmemLocation location, gpumem_access access) {
    if (access != GPUMEM_ACCESS_NONE)
        v->access[v->access_count++] =
            (CUmemAccessDesc){.location = location, .flags = gm_vmm_access_flags(access)};
}

static gpumem_status settle_peer(struct virtual_resource *v, int ordinal) {
    int count = v->device->library->device_count;
    GM_REQUIRE(ordinal >= 0 && ordinal < count, "virtual resource: there is no peer device %d",
               ordinal);
    if (ordinal == v->device->ordinal)
        return GPUMEM_OK;
    int can = 0;
    gpumem_status status = gpumem_device_can_access_peer(v->device, ordinal, &can);
    CUdevice peer = 0;
    if (status != GPUMEM_OK)
        return status;
    CUresult result = v->device->cu->cuDeviceGet(&peer, ordinal);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(v->device->cu, result, "cuDeviceGet", "device %d", ordinal);
    /* Asked of the peer, which is the one that will read this device's memory. */
    result = v->device->cu->cuDeviceCanAccessPeer(&can, peer, v->device->handle);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(v->device->cu, result, "cuDeviceCanAccessPeer", "devices %d and %d",
                          ordinal, v->device->ordinal);
    if (!can)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "device %d cannot reach memory of device %d (no peer access)", ordinal,
                       v->device->ordinal);
    add_access(v, (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = peer},
               v->options.peer_access);
    return GPUMEM_OK;
}

static gpumem_status settle_access(struct virtual_resource *v) {
    v->access = calloc(v->options.peer_count + 2, sizeof *v->access);
    if (!v->access)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    add_access(v, (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = v->device->handle},
               v->options.self_access);
    if (v->options.location != GPUMEM_LOCATION_DEVICE) {
        add_access(v, v->prop.location, GPUMEM_ACCESS_READ_WRITE);
        v->host_accessible = 1;
    }
    for (size_t i = 0; i < v->options.peer_count; i++) {
        gpumem_status status = settle_peer(v, v->options.peers[i]);
        if (status != GPUMEM_OK)
            return status;
    }
    return GPUMEM_OK;
}

static gpumem_status settle(struct virtual_resource *v) {
    gpumem_status status = check_enumerations(&v->options);
    if (status != GPUMEM_OK)
        return status;
    status = gm_vmm_supported(v->device);
    if (status != GPUMEM_OK)
        return status;
    settle_wishes(v);
    status = settle_handle_type(v);
    if (status != GPUMEM_OK)
        return status;
    status = settle_sizes(v);
    if (status != GPUMEM_OK)
        return status;
    return settle_access(v);
}

gpumem_status gpumem_virtual_resource_create(gpumem_device *device,
                                             const gpumem_virtual_options *given,
                                             gpumem_resource **resource) {
    GM_UNCANCELLED;
    GM_CHECK(device, "gpumem_virtual_resource_create");
    GM_REQUIRE(resource, "gpumem_virtual_resource_create: resource is NULL");
    struct virtual_resource *v = calloc(1, sizeof *v);
    if (!v)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    v->device = device;
    gpumem_status status =
        gm_options_read("gpumem_virtual_options", given, &v->options, sizeof v->options);
    if (status == GPUMEM_OK)
        status = settle(v);
    if (status == GPUMEM_OK)
        status = gm_resource_make(device, &ops, v, NULL, &v->resource);
    if (status != GPUMEM_OK) {
        destroy(v);
        return status;
    }
    v->options.peers = NULL; /* the caller's */
    v->resource->chunks = chunks;
    *resource = v->resource;
    return GPUMEM_OK;
}
