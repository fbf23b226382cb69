/* Sizes and offsets whose sums are no numbers, wherever one can be given: each is refused in words,
 * and nothing has changed. */
#include "library_test.h"

#include <gpumem/dlpack_abi.h>
#include <gpumem/pinned.h>
#include <gpumem/pool.h>
#include <gpumem/virtual.h>
#include <gpumem/vmm.h>
#include <gpumem/wrappers.h>

#define TOP ((size_t)1 << 63)

static const size_t extremes[] = {
    SIZE_MAX,           SIZE_MAX - 1,     SIZE_MAX - 4095, SIZE_MAX - 2 * MIB + 1,
    SIZE_MAX - 2 * MIB, SIZE_MAX / 2 + 1, SIZE_MAX / 2,    TOP + MIB};

static gpumem_resource *memory, *pool, *pinned;
static gpumem_buffer *buffer, *on_host;

static void refuse(gpumem_status status, const char *call, size_t size) {
    const char *message = gpumem_last_error()->message;
    if (status == GPUMEM_OK || strlen(message) < 10)
        fail_msg("%s with %zu (2^64 - %zu) answers %s, '%s'", call, size, SIZE_MAX - size + 1,
                 gpumem_status_name(status), message);
}
#define REFUSED(call) refuse((call), #call, x)

static void of_buffers(size_t x) {
    gpumem_buffer *made = NULL;
    CUdeviceptr address = 0;
    size_t released = 0;
    gpumem_access access;
    REFUSED(gpumem_buffer_view(buffer, x, 2, &made));
    REFUSED(gpumem_buffer_view(buffer, 2, x, &made));
    REFUSED(gpumem_buffer_grow(buffer, x, NULL));
    REFUSED(gpumem_buffer_move_to_capacity(buffer, x, NULL, &address));
    REFUSED(gpumem_buffer_decommit(buffer, x, 4 * MIB, NULL, &released));
    REFUSED(gpumem_buffer_decommit(buffer, 2 * MIB, x, NULL, &released));
    REFUSED(gpumem_buffer_recommit(buffer, x, 4 * MIB));
    REFUSED(gpumem_buffer_recommit(buffer, 2 * MIB, x));
    REFUSED(gpumem_buffer_set_access(buffer, x, 2 * MIB, 0, GPUMEM_ACCESS_READ, NULL));
    REFUSED(gpumem_buffer_set_access(buffer, 2 * MIB, x, 0, GPUMEM_ACCESS_READ, NULL));
    REFUSED(gpumem_buffer_get_access(buffer, x, 0, &access));
    assert_null(made);
}

static void of_copies(size_t x) {
    static unsigned char host[64];
    const uint32_t pattern = 1;
    const gpumem_rows pitch = {.width = 16, .count = 3, .to_pitch = x, .from_pitch = 16};
    const gpumem_rows count = {.width = 16, .count = x, .to_pitch = 16, .from_pitch = 16};
    const gpumem_rows width = {.width = x, .count = 2};
    const gpumem_rows *rows[] = {&pitch, &count, &width};
    const gpumem_buffer_copy_item items[] = {{buffer, x, on_host, 0, 64},
                                             {buffer, 0, on_host, 0, x}};
    REFUSED(gpumem_buffer_write(buffer, x, host, 64, NULL));
    REFUSED(gpumem_buffer_read(buffer, 64, host, x, NULL));
    REFUSED(gpumem_buffer_fill(buffer, x, 64, 0, NULL));
    REFUSED(gpumem_buffer_fill_pattern(buffer, 4, x & ~(size_t)3, &pattern, 4, NULL));
    REFUSED(gpumem_buffer_copy(buffer, x, on_host, 0, 64, NULL));
    REFUSED(gpumem_buffer_copy(buffer, 0, on_host, x, 64, NULL));
    REFUSED(copy_now(buffer, 64, on_host, 64, x, NULL));
    for (size_t i = 0; i < COUNT(items); i++)
        REFUSED(gpumem_buffer_copy_batch(&items[i], 1, NULL, NULL));
    for (size_t i = 0; i < COUNT(rows); i++) {
        REFUSED(gpumem_buffer_copy_2d(buffer, 0, on_host, 0, rows[i], NULL));
        REFUSED(gpumem_buffer_write_2d(buffer, 0, host, rows[i], NULL));
    }
}

static void of_allocations(size_t x) {
    gpumem_resource *all[] = {memory, pool, pinned};
    gpumem_buffer *made = NULL;
    CUdeviceptr pointer = 0;
    for (size_t i = 0; i < COUNT(all); i++) {
        REFUSED(gpumem_buffer_allocate(all[i], x, NULL, &made));
        REFUSED(gpumem_buffer_allocate(all[i], x, GPUMEM_BUFFER_OPTIONS(.alignment = TOP), &made));
        REFUSED(gpumem_buffer_allocate(all[i], MIB, GPUMEM_BUFFER_OPTIONS(.capacity = x), &made));
        REFUSED(
            gpumem_buffer_allocate(all[i], MIB, GPUMEM_BUFFER_OPTIONS(.alignment = TOP), &made));
        REFUSED(gpumem_resource_allocate(all[i], x, NULL, &pointer));
        OK(gpumem_resource_trim(all[i], x));
    }
    REFUSED(gpumem_buffer_from_pointer(device, gpumem_buffer_pointer(buffer), x, NULL, &made));
    REFUSED(gpumem_buffer_from_pointer(device, x, 4096, NULL, &made));
    assert_null(made);
}

static void of_low_level_memory(size_t x) {
    gpumem_reservation *range = NULL, *none = NULL;
    gpumem_physical *physical = NULL, *found = NULL;
    gpumem_mapping *mapping = NULL;
    REFUSED(gpumem_reservation_create(device, x, NULL, &none));
    REFUSED(gpumem_physical_create(device, x, NULL, &found));
    REFUSED(gpumem_physical_from_address(device, x, 0, &found));
    REFUSED(gpumem_physical_from_address(device, gpumem_buffer_pointer(buffer), x, &found));
    REFUSED(gpumem_physical_from_address(device, gpumem_buffer_pointer(buffer), 4 * MIB, &found));
    SAYS("has 2097152 bytes");
    OK(gpumem_reservation_create(device, 4 * MIB, NULL, &range));
    OK(gpumem_physical_create(device, 2 * MIB, NULL, &physical));
    REFUSED(gpumem_mapping_create(range, x, physical, &mapping));
    REFUSED(gpumem_reservation_unmap(range, x, 2 * MIB));
    REFUSED(gpumem_reservation_unmap(range, 2 * MIB, x));
    REFUSED(gpumem_reservation_set_access(range, x, 2 * MIB, 0, GPUMEM_ACCESS_READ));
    REFUSED(gpumem_reservation_set_access(range, 2 * MIB, x, 0, GPUMEM_ACCESS_READ));
    DESTROY(physical, range);
}

/* A resource may be made with bounds that nothing reaches; what it then gives is what fits. */
static void try_resource(gpumem_status status, gpumem_resource *made) {
    gpumem_buffer *little = NULL;
    if (status != GPUMEM_OK) {
        assert_true(strlen(gpumem_last_error()->message) >= 10);
        return;
    }
    status = gpumem_buffer_allocate(made, 1000, NULL, &little);
    if (status != GPUMEM_OK)
        assert_true(strlen(gpumem_last_error()->message) >= 10);
    OK(gpumem_buffer_free(little, NULL));
    OK(gpumem_device_trim(device, 1));
    OK(gpumem_resource_destroy(made));
}
#define TRIED(function, from, ...)                                                                 \
    do {                                                                                           \
        gpumem_resource *made_ = NULL;                                                             \
        gpumem_status status_ = function(from, __VA_ARGS__, &made_);                               \
        try_resource(status_, made_);                                                              \
    } while (0)

static void of_options(size_t x) {
    TRIED(gpumem_virtual_resource_create, device, GPUMEM_VIRTUAL_OPTIONS(.minimum_chunk_bytes = x));
    TRIED(gpumem_virtual_resource_create, device, GPUMEM_VIRTUAL_OPTIONS(.maximum_chunk_bytes = x));
    TRIED(gpumem_virtual_resource_create, device, GPUMEM_VIRTUAL_OPTIONS(.give_back_bytes = x));
    TRIED(gpumem_virtual_resource_create, device, GPUMEM_VIRTUAL_OPTIONS(.capacity = x));
    TRIED(gpumem_virtual_resource_create, device, GPUMEM_VIRTUAL_OPTIONS(.address_alignment = TOP));
    TRIED(gpumem_virtual_resource_create, device, GPUMEM_VIRTUAL_OPTIONS(.address_hint = x));
    TRIED(gpumem_virtual_resource_create, device, GPUMEM_VIRTUAL_OPTIONS(.cache_bytes = x));
    TRIED(gpumem_pinned_resource_create, device, GPUMEM_PINNED_OPTIONS(.slab_bytes = x));
    TRIED(gpumem_pinned_resource_create, device, GPUMEM_PINNED_OPTIONS(.maximum_bytes = x));
    TRIED(gpumem_device_pool_resource_create, device,
          GPUMEM_DEVICE_POOL_OPTIONS(.maximum_bytes = x));
    TRIED(gpumem_caching_resource_create, memory, GPUMEM_CACHING_OPTIONS(.segment_bytes = x));
    TRIED(gpumem_caching_resource_create, memory, GPUMEM_CACHING_OPTIONS(.thread_bytes = x));
    TRIED(gpumem_caching_resource_create, memory, GPUMEM_CACHING_OPTIONS(.maximum_small_bytes = x));
    TRIED(gpumem_caching_resource_create, memory, GPUMEM_CACHING_OPTIONS(.maximum_bytes = x));
    TRIED(gpumem_alignment_resource_create, memory, GPUMEM_ALIGNMENT_OPTIONS(.alignment = TOP));
    TRIED(gpumem_alignment_resource_create, memory, GPUMEM_ALIGNMENT_OPTIONS(.size_multiple = TOP));
    TRIED(gpumem_alignment_resource_create, pool, GPUMEM_ALIGNMENT_OPTIONS(.size_multiple = TOP));
    TRIED(gpumem_alignment_resource_create, pinned, GPUMEM_ALIGNMENT_OPTIONS(.alignment = TOP));
    TRIED(gpumem_limiting_resource_create, memory, x);
}

static void of_tensors(size_t x) {
    DLManagedTensorVersioned *tensor = NULL;
    const int64_t shape[] = {INT64_MAX, INT64_MAX}, ones[] = {2, 2};
    const int64_t far[] = {INT64_MAX, 1};
    REFUSED(gpumem_buffer_to_dlpack(buffer, GPUMEM_DLPACK_OPTIONS(.offset = x), &tensor));
    REFUSED(
        gpumem_buffer_to_dlpack(buffer, GPUMEM_DLPACK_OPTIONS(.ndim = 2, .shape = shape), &tensor));
    REFUSED(gpumem_buffer_to_dlpack(
        buffer, GPUMEM_DLPACK_OPTIONS(.ndim = 2, .shape = ones, .strides = far), &tensor));
    assert_null(tensor);
}

static void run_all(void (*check)(size_t)) {
    char *before = soft->state_dump();
    for (size_t i = 0; i < COUNT(extremes); i++)
        check(extremes[i]);
    OK(gpumem_device_trim(device, 1));
    SAME_STATE(before);
    assert_int_equal(gpumem_buffer_size(buffer), 4 * MIB);
}

#define TEST_OF(what)                                                                              \
    TEST(extreme_sizes_##what##_are_refused) {                                                     \
        run_all(what);                                                                             \
    }

TEST_OF(of_buffers)
TEST_OF(of_copies)
TEST_OF(of_allocations)
TEST_OF(of_low_level_memory)
TEST_OF(of_options)
TEST_OF(of_tensors)

static int begin(void **state) {
    if (open_device(state) != 0)
        return -1;
    memory = NEW_VIRTUAL(.maximum_chunk_bytes = 2 * MIB, .exact_growth = 1);
    pool = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    pinned = NEW_PINNED(.slab_bytes = 2 * MIB);
    buffer = NEW_BUFFER_WITH(memory, 4 * MIB, .capacity = 8 * MIB);
    on_host = NEW_BUFFER(pinned, MIB);
    return make_host_memory_file();
}

AFTER(close_device) {
    DESTROY(buffer, on_host);
    OK(gpumem_device_trim(device, 1));
    DESTROY(pinned, pool, memory);
}

ALL_TESTS(begin, after);
