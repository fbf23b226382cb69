/* Turns a virtual resource's options into what this machine provides. */
#include "base/options.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/object/device.h"
#include "memory/virtual/virtual_resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first export of a 1 GiB handle took 165 ms on an H200, of 512 MiB under 1 ms. */
#define EXPORTED_CHUNK_MAXIMUM ((size_t)512 << 20)
#define DEFAULT_GROWTH_PERCENT 50u

/* No 57-bit address, the largest that processors have, is a multiple of more. */
#define MOST_ALIGNMENT ((size_t)1 << 56)

static void add_note(struct gm_virtual_resource *v, const char *text) {
    size_t used = strlen(v->note);
    snprintf(v->note + used, sizeof v->note - used, "%s%s", used ? "; " : "", text);
}

/* Creates and releases one granule: attributes promise what machines then refuse. */
static gpumem_status probe(struct gm_virtual_resource *v, gpumem_handle_type type) {
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
    return gm_virtual_is_short(status) ? GPUMEM_OK : status; /* it is not refused */
}

static int refused(gpumem_status status) {
    return status == GPUMEM_ERROR_NOT_SUPPORTED || status == GPUMEM_ERROR_NOT_PERMITTED ||
           (status == GPUMEM_ERROR_DRIVER &&
            gpumem_last_error()->driver_code == CUDA_ERROR_INVALID_VALUE);
}

/* FABRIC, then POSIX_FD, then none, from the wanted one on. */
static gpumem_status settle_handle_type(struct gm_virtual_resource *v) {
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

static void settle_wishes(struct gm_virtual_resource *v) {
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

/* No query reports the possible alignments: one granule is reserved and given back. */
static gpumem_status check_alignment(const struct gm_virtual_resource *v) {
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
                       "virtual resource: no addresses are aligned to address_alignment %zu",
                       v->alignment);
    return status;
}

/* Memory that is not exported may be of any size. */
static size_t default_maximum(const struct gm_virtual_resource *v) {
    const gpumem_virtual_options *o = &v->options;
    if (v->handle_type == GPUMEM_HANDLE_NONE)
        return o->give_back_bytes;
    return EXPORTED_CHUNK_MAXIMUM > o->minimum_chunk_bytes ? EXPORTED_CHUNK_MAXIMUM
                                                           : o->minimum_chunk_bytes;
}

static gpumem_status settle_sizes(struct gm_virtual_resource *v) {
    gpumem_virtual_options *o = &v->options;
    size_t unit = v->granularity;
    if (!o->minimum_chunk_bytes)
        o->minimum_chunk_bytes = unit;
    if (!o->give_back_bytes)
        o->give_back_bytes = SIZE_MAX / unit * unit;
    if (!o->maximum_chunk_bytes)
        o->maximum_chunk_bytes = default_maximum(v);
    if (!o->growth_percent)
        o->growth_percent = DEFAULT_GROWTH_PERCENT;
    GM_REQUIRE(o->minimum_chunk_bytes % unit == 0 && o->maximum_chunk_bytes % unit == 0,
               "virtual resource: chunk sizes %zu and %zu must be multiples of the granularity %zu",
               o->minimum_chunk_bytes, o->maximum_chunk_bytes, unit);
    GM_REQUIRE(o->give_back_bytes % unit == 0,
               "virtual resource: give_back_bytes %zu must be a multiple of the granularity %zu",
               o->give_back_bytes, unit);
    if (o->maximum_chunk_bytes > o->give_back_bytes)
        o->maximum_chunk_bytes = o->give_back_bytes;
    GM_REQUIRE(o->minimum_chunk_bytes <= o->maximum_chunk_bytes,
               "virtual resource: minimum_chunk_bytes %zu is above maximum_chunk_bytes or "
               "give_back_bytes, %zu",
               o->minimum_chunk_bytes, o->maximum_chunk_bytes);
    GM_REQUIRE((o->address_alignment & (o->address_alignment - 1)) == 0,
               "virtual resource: address_alignment %zu is not a power of two",
               o->address_alignment);
    v->alignment = o->address_alignment > unit ? o->address_alignment : unit;
    GM_REQUIRE(o->address_hint % v->alignment == 0,
               "virtual resource: address_hint 0x%llx is not a multiple of the alignment %zu",
               o->address_hint, v->alignment);
    return check_alignment(v);
}

static gpumem_status reaches(gpumem_device *device, int ordinal, CUdevice peer) {
    bool reached = false;
    gpumem_status status = gpumem_device_can_access_peer(device, ordinal, &reached);
    if (status != GPUMEM_OK)
        return status;
    int can = 0;
    /* Queried for the peer, which will read this device's memory. */
    CUresult result = device->cu->cuDeviceCanAccessPeer(&can, peer, device->handle);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(device->cu, result, "cuDeviceCanAccessPeer", "devices %d and %d", ordinal,
                          device->ordinal);
    if (can)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                   "device %d cannot access memory of device %d (no peer access)", ordinal,
                   device->ordinal);
}

gpumem_status gm_virtual_locate(gpumem_device *device, int ordinal, int gives, const char *what,
                                CUmemLocation *location) {
    GM_REQUIRE(ordinal >= 0 && ordinal < device->library->device_count,
               "%s: there is no peer device %d", what, ordinal);
    *location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->handle};
    if (ordinal == device->ordinal)
        return GPUMEM_OK;
    CUdevice peer = 0;
    CUresult result = device->cu->cuDeviceGet(&peer, ordinal);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(device->cu, result, "cuDeviceGet", "device %d", ordinal);
    location->id = peer;
    return gives ? reaches(device, ordinal, peer) : GPUMEM_OK;
}

static void add_access(CUmemAccessDesc *entries, size_t *count, CUmemLocation location,
                       gpumem_access access) {
    if (access != GPUMEM_ACCESS_NONE)
        entries[(*count)++] =
            (CUmemAccessDesc){.location = location, .flags = gm_vmm_access_flags(access)};
}

static gpumem_status add_peers(struct gm_virtual_resource *v, CUmemAccessDesc *entries,
                               size_t *count) {
    for (size_t i = 0; i < v->options.peer_count; i++) {
        CUmemLocation location;
        if (v->options.peers[i] == v->device->ordinal)
            continue;
        gpumem_status status =
            gm_virtual_locate(v->device, v->options.peers[i], 1, "virtual resource", &location);
        if (status != GPUMEM_OK)
            return status;
        add_access(entries, count, location, v->options.peer_access);
    }
    return GPUMEM_OK;
}

static gpumem_status settle_access(struct gm_virtual_resource *v) {
    const CUmemLocation own = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = v->device->handle};
    CUmemAccessDesc *entries = calloc(v->options.peer_count + 3, sizeof *entries);
    if (!entries)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    size_t count = 0;
    add_access(entries, &count, own, v->options.self_access);
    if (v->options.location != GPUMEM_LOCATION_DEVICE) {
        add_access(entries, &count, v->prop.location, GPUMEM_ACCESS_READ_WRITE);
        v->host_accessible = 1;
    }
    struct gm_access access = {NULL, 0};
    if (v->maker && v->maker->cpu_access)
        add_access(entries, &count, (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST},
                   GPUMEM_ACCESS_READ_WRITE);
    gpumem_status status = add_peers(v, entries, &count);
    if (status == GPUMEM_OK)
        status = gm_virtual_intern(v, entries, count, &access);
    free(entries);
    v->access = access.entries;
    v->access_count = access.count;
    return status;
}

gpumem_status gm_virtual_settle(struct gm_virtual_resource *v) {
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
