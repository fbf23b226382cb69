/*
 * A user's program in the common part of C and C++20, compiled against headers that are older than
 * the library (test_older_programs.py makes either). Behind each struct lie bytes that the struct
 * of the library's version would cover: the library must neither read nor write them.
 */
#include <gpumem/gpumem.h>
#include <stdio.h>
#include <string.h>

#define MIB    ((size_t)1 << 20)
#define POISON 0xA5

static int wrong;
static gpumem_library *library;
static gpumem_device *device;

static void expect(int good, const char *what, int line) {
    if (good)
        return;
    printf("line %d: %s; the last error is: %s\n", line, what, gpumem_last_error()->message);
    wrong++;
}

#define EXPECT(condition) expect((condition), #condition, __LINE__)
#define OK(call)          expect((call) == GPUMEM_OK, #call, __LINE__)
#define REFUSED(call)     expect((call) == GPUMEM_ERROR_INVALID_ARGUMENT, #call, __LINE__)

/* A zeroed struct of a type, and what lies behind it. */
#define BESIDE(type, name)                                                                         \
    struct {                                                                                       \
        type given;                                                                                \
        unsigned char behind[64];                                                                  \
    } name;                                                                                        \
    memset(&name, 0, sizeof name);                                                                 \
    memset(name.behind, POISON, sizeof name.behind);                                               \
    name.given.size = sizeof name.given

static int untouched(const unsigned char *behind, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (behind[i] != POISON)
            return 0;
    return 1;
}

/* The call fills the struct, and nothing behind it. */
#define RESULT(type, name, call)                                                                   \
    BESIDE(type, name);                                                                            \
    OK(call);                                                                                      \
    EXPECT(name.given.size == sizeof(type));                                                       \
    EXPECT(untouched(name.behind, sizeof name.behind));                                            \
    name.given.size = sizeof(size_t);                                                              \
    REFUSED(call)

/* ---- Options --------------------------------------------------------------------------------- */

static void sizes_of_options(void) {
    BESIDE(gpumem_event_options, options);
    CUevent event = NULL;
    options.given.timing = 1;
    OK(gpumem_event_create(device, &options.given, &event));
    OK(gpumem_event_destroy(device, event));
    /* A struct of zeros is the default, whatever lies behind it. */
    memset(&options.given, 0, sizeof options.given);
    OK(gpumem_event_create(device, &options.given, &event));
    OK(gpumem_event_destroy(device, event));
    options.given.timing = 1;
    REFUSED(gpumem_event_create(device, &options.given, &event));
    options.given.size = sizeof(size_t);
    REFUSED(gpumem_event_create(device, &options.given, &event));
}

static void resources(void) {
    BESIDE(gpumem_pinned_options, pinned);
    BESIDE(gpumem_managed_options, managed);
    BESIDE(gpumem_device_pool_options, pooled);
    BESIDE(gpumem_caching_options, caching);
    gpumem_resource *made, *cache;
    gpumem_buffer *buffer;
    pinned.given.slab_bytes = 4 * MIB;
    pinned.given.maximum_bytes = 4 * MIB;
    OK(gpumem_pinned_resource_create(device, &pinned.given, &made));
    BESIDE(gpumem_buffer_options, options);
    options.given.alignment = 4096;
    OK(gpumem_buffer_allocate(made, MIB, &options.given, &buffer));
    EXPECT(gpumem_buffer_pointer(buffer) % 4096 == 0);
    RESULT(gpumem_pinned_info, info, gpumem_pinned_get_info(made, &info.given));
    EXPECT(info.given.pinned_bytes == 4 * MIB);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_resource_destroy(made));
    OK(gpumem_managed_resource_create(device, &managed.given, &made));
    OK(gpumem_resource_destroy(made));
    pooled.given.maximum_bytes = 64 * MIB;
    OK(gpumem_device_pool_resource_create(device, &pooled.given, &made));
    RESULT(gpumem_pool_info, pool, gpumem_pool_get_info(made, &pool.given));
    OK(gpumem_caching_resource_create(made, &caching.given, &cache));
    OK(gpumem_buffer_allocate(cache, 1000, &options.given, &buffer));
    OK(gpumem_buffer_free(buffer, NULL));
    RESULT(gpumem_caching_info, cached, gpumem_caching_get_info(cache, &cached.given));
    OK(gpumem_resource_destroy(cache));
    OK(gpumem_resource_destroy(made));
}

static void growth_and_sharing(void) {
    BESIDE(gpumem_virtual_options, virtually);
    BESIDE(gpumem_buffer_options, options);
    BESIDE(gpumem_share_options, share);
    gpumem_resource *made;
    gpumem_buffer *buffer, *imported;
    gpumem_export *exported;

    virtually.given.exact_growth = 1;
    OK(gpumem_virtual_resource_create(device, &virtually.given, &made));
    options.given.capacity = 64 * MIB;
    OK(gpumem_buffer_allocate(made, 2 * MIB, &options.given, &buffer));
    EXPECT(gpumem_buffer_capacity(buffer) >= 64 * MIB);
    RESULT(gpumem_layout, layout, gpumem_buffer_get_layout(buffer, &layout.given, NULL, 0));
    RESULT(gpumem_buffer_attributes, attributes,
           gpumem_buffer_get_attributes(buffer, &attributes.given));
    OK(gpumem_export_create(buffer, &exported));
    RESULT(gpumem_export_info, info, gpumem_export_get_info(exported, &info.given));
    OK(gpumem_import_create(device, info.given.description, info.given.description_bytes,
                            info.given.descriptors, 1, &share.given, &imported));
    EXPECT(gpumem_buffer_size(imported) == 2 * MIB);
    OK(gpumem_buffer_free(imported, NULL));
    OK(gpumem_export_destroy(exported));
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_resource_destroy(made));
}

/* ---- A resource of the program's ------------------------------------------------------------- */

static size_t taken, given_back;
static gpumem_resource *below;

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    gpumem_buffer *from;
    BESIDE(gpumem_buffer_options, options);
    (void)user;
    options.given.stream = request->stream;
    gpumem_status status = gpumem_buffer_allocate(below, request->bytes, &options.given, &from);
    if (status != GPUMEM_OK)
        return status;
    /* Written whole, as long as this program knows it. */
    gpumem_allocation made;
    memset(&made, 0, sizeof made);
    made.size = sizeof made;
    made.pointer = gpumem_buffer_pointer(from);
    made.bytes = made.capacity = request->bytes;
    made.committed_bytes = gpumem_buffer_committed(from);
    made.cookie = from;
    *allocation = made;
    taken += request->bytes;
    return GPUMEM_OK;
}

static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    (void)user;
    given_back += allocation->bytes;
    OK(gpumem_buffer_free((gpumem_buffer *)allocation->cookie, stream));
}

static void properties(void *user, gpumem_resource_properties *out) {
    (void)user;
    out->device_accessible = 1;
}

static void own_resource(void) {
    BESIDE(gpumem_resource_ops, ops);
    gpumem_resource *own;
    gpumem_buffer *buffer;
    ops.given.kind = "older";
    ops.given.allocate = allocate;
    ops.given.deallocate = deallocate;
    ops.given.properties = properties;
    OK(gpumem_device_pool_resource_create(device, NULL, &below));
    OK(gpumem_resource_create(device, &ops.given, NULL, &own));
    OK(gpumem_buffer_allocate(own, MIB, NULL, &buffer));
    EXPECT(taken == MIB);
    RESULT(gpumem_resource_properties, facts, gpumem_resource_get_properties(own, &facts.given));
    EXPECT(strcmp(facts.given.kind, "older") == 0 && !facts.given.exportable);
    RESULT(gpumem_stats, stats, gpumem_resource_get_stats(own, &stats.given));
    EXPECT(stats.given.allocations == 1);
    OK(gpumem_buffer_free(buffer, NULL));
    EXPECT(given_back == MIB);
    OK(gpumem_resource_destroy(own));
    OK(gpumem_resource_destroy(below));
}

/* ---- What is told of library and device ------------------------------------------------------ */

static void results(void) {
    RESULT(gpumem_library_info, about, gpumem_library_get_info(library, &about.given));
    RESULT(gpumem_device_info, info, gpumem_device_get_info(library, 0, &info.given));
    EXPECT(info.given.name[0] && info.given.memory_bytes);
    RESULT(gpumem_stats, stats, gpumem_device_get_stats(device, &stats.given));
    RESULT(gpumem_capability_report, report,
           gpumem_device_get_capability(device, GPUMEM_CAPABILITY_VIRTUAL_MEMORY, &report.given));
}

int main(void) {
    BESIDE(gpumem_open_options, options);
    options.given.driver = "softgpu";
    if (gpumem_open(&options.given, &library) != GPUMEM_OK ||
        gpumem_device_open(library, 0, &device) != GPUMEM_OK) {
        printf("no device: %s\n", gpumem_last_error()->message);
        return 1;
    }
    sizes_of_options();
    resources();
    growth_and_sharing();
    own_resource();
    results();
    OK(gpumem_device_close(device));
    OK(gpumem_close(library));
    printf("library %d\n", gpumem_version());
    return wrong != 0;
}
