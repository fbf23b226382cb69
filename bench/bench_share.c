/*
 * Importing a shared buffer compared with the bare driver in the same run: the descriptors are at
 * hand and nothing is cached, as when another process's description has just arrived. Also the cost
 * of growth to an importer, compared with mapping everything again.
 */
#include "check.h"
#include "table.h"

#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 21
#define MIB    ((size_t)1 << 20)
#define GIB    ((size_t)1 << 30)
#define MOST   4096

static const gpumem_driver_api *cu;
static gpumem_device *device;

/* What the other process sent. */
struct received {
    const void *description;
    size_t description_bytes;
    int descriptors[MOST];
    size_t sizes[MOST];
    size_t count, bytes;
};

static void take(struct received *received, gpumem_buffer *buffer, const gpumem_export *exported) {
    gpumem_export_info info = {.size = sizeof info};
    ok(gpumem_export_get_info(exported, &info), "description");
    received->count = info.descriptor_count;
    if (received->count > MOST)
        bench_fail("%zu handles are too many", received->count);
    received->description = info.description;
    received->description_bytes = info.description_bytes;
    received->bytes = gpumem_buffer_committed(buffer);
    gpumem_layout layout = {.size = sizeof layout};
    gpumem_segment *segments = calloc(received->count, sizeof *segments);
    if (!segments)
        bench_fail("no memory");
    ok(gpumem_buffer_get_layout(buffer, &layout, segments, received->count), "layout");
    for (size_t i = 0; i < received->count; i++) {
        received->descriptors[i] = info.descriptors[i];
        received->sizes[i] = segments[i].bytes;
    }
    free(segments);
}

/* ---- Both ways ------------------------------------------------------------------------------- */

static gpumem_buffer *import_by_library(const struct received *from, size_t capacity) {
    gpumem_buffer *buffer;
    ok(gpumem_import_create(device, from->description, from->description_bytes, from->descriptors,
                            from->count, GPUMEM_SHARE_OPTIONS(.capacity = capacity), &buffer),
       "import");
    return buffer;
}

static void drop(gpumem_buffer *buffer) {
    ok(gpumem_buffer_free(buffer, NULL), "free");
    ok(gpumem_device_trim(device, 1), "trim");
}

struct bare {
    CUdeviceptr address;
    size_t capacity;
    CUmemGenericAllocationHandle handles[MOST];
};

static void map_bare(struct bare *bare, const struct received *from, size_t first, size_t offset) {
    const CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpumem_device_handle(device)},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    size_t start = offset;
    for (size_t i = first; i < from->count; i++) {
        MUST(cu->cuMemImportFromShareableHandle(&bare->handles[i],
                                                (void *)(intptr_t)from->descriptors[i],
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
             "cuMemImportFromShareableHandle");
        MUST(cu->cuMemMap(bare->address + offset, from->sizes[i], 0, bare->handles[i], 0),
             "cuMemMap");
        offset += from->sizes[i];
    }
    MUST(cu->cuMemSetAccess(bare->address + start, offset - start, &access, 1), "cuMemSetAccess");
}

static void import_bare(struct bare *bare, const struct received *from) {
    bare->capacity = from->bytes;
    MUST(cu->cuMemAddressReserve(&bare->address, bare->capacity, 0, 0, 0), "cuMemAddressReserve");
    map_bare(bare, from, 0, 0);
}

static void drop_bare(const struct bare *bare, const struct received *from) {
    MUST(cu->cuMemUnmap(bare->address, from->bytes), "cuMemUnmap");
    for (size_t i = 0; i < from->count; i++)
        MUST(cu->cuMemRelease(bare->handles[i]), "cuMemRelease");
    MUST(cu->cuMemAddressFree(bare->address, bare->capacity), "cuMemAddressFree");
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* In turns, so that both see the machine in the same state. Freeing the imports is not timed. */
static void importing(const char *what, size_t bytes, size_t chunk) {
    static struct bare bare;
    static struct received received;
    double library[ROUNDS], by_hand[ROUNDS];
    gpumem_resource *resource;
    gpumem_buffer *buffer;
    gpumem_export *exported;
    ok(gpumem_virtual_resource_create(
           device, GPUMEM_VIRTUAL_OPTIONS(.maximum_chunk_bytes = chunk, .exact_growth = 1),
           &resource),
       "virtual resource");
    ok(gpumem_buffer_allocate(resource, bytes, NULL, &buffer), "allocate");
    ok(gpumem_export_create(buffer, &exported), "export");
    take(&received, buffer, exported);
    import_bare(&bare, &received); /* warms both: the first import of a handle costs more */
    drop_bare(&bare, &received);
    drop(import_by_library(&received, 0));
    for (int i = 0; i < ROUNDS; i++) {
        double start = bench_now();
        import_bare(&bare, &received);
        by_hand[i] = 1e6 * (bench_now() - start);
        drop_bare(&bare, &received);
        start = bench_now();
        gpumem_buffer *import = import_by_library(&received, 0);
        library[i] = 1e6 * (bench_now() - start);
        drop(import);
    }
    char row[96];
    snprintf(row, sizeof row, "%s, %zu handle%s", what, received.count,
             received.count == 1 ? "" : "s");
    bench_row(row, bench_median(library, ROUNDS), bench_median(by_hand, ROUNDS), "us");
    ok(gpumem_export_destroy(exported), "export");
    ok(gpumem_buffer_free(buffer, NULL), "free");
    ok(gpumem_resource_destroy(resource), "destroy");
}

/* An import of 1 GiB adds 64 MiB: compared with the bare calls for those 64 MiB. */
static void growing(void) {
    static struct bare bare;
    static struct received before, after;
    double library[ROUNDS], by_hand[ROUNDS];
    gpumem_resource *resource;
    gpumem_buffer *buffer;
    gpumem_export *first, *second;
    ok(gpumem_virtual_resource_create(device, GPUMEM_VIRTUAL_OPTIONS(.exact_growth = 1), &resource),
       "virtual resource");
    ok(gpumem_buffer_allocate(resource, GIB, GPUMEM_BUFFER_OPTIONS(.capacity = 2 * GIB), &buffer),
       "allocate");
    ok(gpumem_export_create(buffer, &first), "export");
    take(&before, buffer, first);
    ok(gpumem_buffer_grow(buffer, GIB + 64 * MIB, NULL), "grow");
    ok(gpumem_export_create(buffer, &second), "export");
    take(&after, buffer, second);
    for (int i = 0; i < ROUNDS; i++) {
        bare.capacity = 2 * GIB;
        MUST(cu->cuMemAddressReserve(&bare.address, bare.capacity, 0, 0, 0), "cuMemAddressReserve");
        map_bare(&bare, &before, 0, 0);
        double start = bench_now();
        map_bare(&bare, &after, before.count, before.bytes);
        by_hand[i] = 1e6 * (bench_now() - start);
        drop_bare(&bare, &after);
        gpumem_buffer *import = import_by_library(&before, 2 * GIB);
        start = bench_now();
        ok(gpumem_import_extend(import, after.description, after.description_bytes,
                                after.descriptors + before.count, after.count - before.count, NULL),
           "extend");
        library[i] = 1e6 * (bench_now() - start);
        drop(import);
    }
    bench_row("growth by 64 MiB taken in (gpumem_import_extend)", bench_median(library, ROUNDS),
              bench_median(by_hand, ROUNDS), "us");
    ok(gpumem_export_destroy(second), "export");
    ok(gpumem_export_destroy(first), "export");
    ok(gpumem_buffer_free(buffer, NULL), "free");
    ok(gpumem_resource_destroy(resource), "destroy");
}

int main(void) {
    gpumem_library *library = NULL;
    ok(gpumem_open(NULL, &library), "open");
    ok(gpumem_device_open(library, 0, &device), "device");
    cu = gpumem_driver_table(gpumem_library_driver(library));
    MUST(cu->cuCtxPushCurrent_v2(gpumem_device_context(device)), "cuCtxPushCurrent");
    const char *choice = getenv("GPUMEM_DRIVER");
    printf("driver: %s, medians of %d rounds in turns, reserving included\n",
           choice ? choice : "libcuda.so.1", ROUNDS);
    bench_header("import of a shared buffer (gpumem_import_create, descriptors at hand, cold)",
                 "bare import + map + set access");
    importing("1 GiB", GIB, 512 * MIB);
    importing("1 GiB", GIB, GIB);
    importing("1 GiB", GIB, 2 * MIB);
    importing("2 MiB", 2 * MIB, 2 * MIB);
    growing();
    CUcontext before = NULL;
    MUST(cu->cuCtxPopCurrent_v2(&before), "cuCtxPopCurrent");
    ok(gpumem_device_close(device), "device close");
    ok(gpumem_close(library), "close");
    return 0;
}
