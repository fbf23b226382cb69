/* Buffers over memory of others: what is taken, what is refused, and when the deleter is called. */
#include "library_test.h"

#include <sys/mman.h>

static CUcontext before;

static int setup(void **state) {
    if (open_device(state) != 0)
        return -1;
    return cu->cuCtxPushCurrent_v2(gpumem_device_context(device)) == CUDA_SUCCESS ? 0 : -1;
}

static int teardown(void **state) {
    cu->cuCtxPopCurrent_v2(&before);
    return close_device(state);
}

ALL_TESTS(setup, teardown);

static CUdeviceptr take(size_t bytes) {
    return MADE_CU(CUdeviceptr, cuMemAlloc_v2, bytes);
}

static gpumem_buffer *over(CUdeviceptr pointer, size_t bytes,
                           const gpumem_foreign_options *options) {
    gpumem_buffer *buffer = NULL;
    OK(gpumem_buffer_from_pointer(device, pointer, bytes, options, &buffer));
    return buffer;
}

/* ---- What is taken --------------------------------------------------------------------------- */

TEST(freeing_a_foreign_buffer_does_not_free_its_memory) {
    CUdeviceptr pointer = take(KIB);
    unsigned char bytes[KIB];
    gpumem_buffer *buffer = over(pointer + 256, 512, NULL);
    assert_int_equal(gpumem_buffer_pointer(buffer), pointer + 256);
    assert_int_equal(gpumem_buffer_size(buffer), 512);
    assert_null(gpumem_buffer_host_pointer(buffer));
    assert_null(gpumem_buffer_resource(buffer));
    MEMBERS(device_stats(), (allocations, 1), (committed_bytes, 0));
    OK(fill_now(buffer, 0, 512, 4, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_fill(buffer, 1, 512, 4, NULL));
    FAILS(NOT_SUPPORTED, gpumem_buffer_grow(buffer, 513, NULL));
    FAILS(NOT_SUPPORTED, gpumem_buffer_shrink(buffer, 1, NULL));
    FAILS_SAYING(BUSY, "1 buffers over foreign memory", gpumem_device_close(device));
    OK(gpumem_buffer_free(buffer, NULL));
    OK_CU(cu->cuMemcpyDtoH_v2(bytes, pointer, KIB));
    assert_int_equal(bytes[256], 4);
    assert_int_equal(bytes[767], 4);
    OK_CU(cu->cuMemFree_v2(pointer));
    assert_int_equal(device_stats().allocations, 0);
}

static int given_back;

static void give_back(void *user, CUdeviceptr pointer, size_t bytes, CUstream stream) {
    free((void *)(uintptr_t)pointer);
    given_back++;
}

TEST(memory_of_the_cpu_alone_becomes_a_buffer) {
    unsigned char *memory = calloc(1, KIB), back[16];
    given_back = 0;
    FAILS(INVALID_ARGUMENT, gpumem_buffer_from_pointer(device, (CUdeviceptr)(uintptr_t)memory, KIB,
                                                       NULL, &(gpumem_buffer *){NULL}));
    FAILS_SAYING(
        INVALID_ARGUMENT, "host_only",
        gpumem_buffer_from_pointer(
            device, (CUdeviceptr)(uintptr_t)memory, KIB,
            GPUMEM_FOREIGN_OPTIONS(.host_only = true, .deleter = give_back, .stream_ordered = true),
            &(gpumem_buffer *){NULL}));
    FAILS(INVALID_ARGUMENT,
          gpumem_buffer_from_pointer(device, 0, KIB, GPUMEM_FOREIGN_OPTIONS(.host_only = true),
                                     &(gpumem_buffer *){NULL}));
    gpumem_buffer *host = over((CUdeviceptr)(uintptr_t)memory, KIB,
                               GPUMEM_FOREIGN_OPTIONS(.host_only = true, .deleter = give_back));
    assert_ptr_equal(gpumem_buffer_host_pointer(host), memory);
    MEMBERS(attributes_of(host), (location, GPUMEM_LOCATION_HOST), (ordinal, -1),
            (device_accessible, 0), (host_accessible, 1), (foreign, 1));
    CUdeviceptr pointer = take(KIB);
    gpumem_buffer *there = over(pointer, KIB, NULL), *part = NEW_VIEW(host, 512, 16);
    OK(gpumem_mapped_write(host, 512, "0123456789abcdef", 16));
    OK(copy_now(there, 0, part, 0, 16, NULL));
    OK(copy_now(host, 0, there, 8, 8, NULL));
    OK(read_now(there, 0, back, 16, NULL));
    assert_memory_equal(back, "0123456789abcdef", 16);
    assert_memory_equal(memory, "89abcdef", 8);
    FAILS_SAYING(NOT_SUPPORTED, "host pointer", gpumem_buffer_fill(part, 0, 16, 1, NULL));
    FAILS(NOT_SUPPORTED, gpumem_buffer_fill_pattern(host, 0, 16, "ab", 2, NULL));
    FAILS_SAYING(BUSY, "foreign memory", gpumem_device_close(device));
    DESTROY(part, there, host);
    OK(gpumem_device_trim(device, true));
    assert_int_equal(given_back, 1);
    OK_CU(cu->cuMemFree_v2(pointer));
}

static void check_kind(CUdeviceptr pointer, gpumem_location location, int managed, int on_cpu) {
    gpumem_buffer *buffer = over(pointer, KIB, NULL);
    gpumem_buffer_attributes attributes = attributes_of(buffer);
    MEMBERS(attributes, (location, location), (managed, managed), (host_accessible, on_cpu),
            (foreign, 1), (imported, 0));
    assert_int_equal(gpumem_buffer_host_pointer(buffer) != NULL, on_cpu);
    OK(fill_now(buffer, 0, KIB, 6, NULL));
    if (on_cpu)
        assert_int_equal(*(unsigned char *)gpumem_buffer_host_pointer(buffer), 6);
    OK(gpumem_buffer_free(buffer, NULL));
}

TEST(every_kind_of_driver_memory_is_recognized) {
    CUdeviceptr pointer = take(KIB), managed = 0;
    check_kind(pointer, GPUMEM_LOCATION_DEVICE, 0, 0);
    OK_CU(cu->cuMemFree_v2(pointer));
    OK_CU(cu->cuMemAllocManaged(&managed, KIB, CU_MEM_ATTACH_GLOBAL));
    check_kind(managed, GPUMEM_LOCATION_DEVICE, 1, 1);
    OK_CU(cu->cuMemFree_v2(managed));
    void *pinned = MADE_CU(void *, cuMemHostAlloc, KIB, 0);
    check_kind((CUdeviceptr)(uintptr_t)pinned, GPUMEM_LOCATION_HOST, 0, 1);
    OK_CU(cu->cuMemFreeHost(pinned));
    void *pages = mmap(NULL, 8 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    OK_CU(cu->cuMemHostRegister_v2(pages, 8 * KIB, 0));
    check_kind((CUdeviceptr)(uintptr_t)pages, GPUMEM_LOCATION_HOST, 0, 1);
    OK_CU(cu->cuMemHostUnregister(pages));
    munmap(pages, 8 * KIB);
}

/* A virtual buffer of many handles, as if another library had mapped it. */
TEST(foreign_memory_may_be_mapped_in_many_pieces) {
    gpumem_resource *resource = NEW_VIRTUAL(.maximum_chunk_bytes = 2 * MIB, .capacity = 16 * MIB);
    gpumem_buffer *inner = NEW_BUFFER(resource, 8 * MIB);
    CUdeviceptr pointer = gpumem_buffer_pointer(inner);
    gpumem_buffer *buffer = over(pointer + KIB, 8 * MIB - KIB, NULL);
    assert_int_equal(attributes_of(buffer).location, GPUMEM_LOCATION_DEVICE);
    OK(gpumem_buffer_free(buffer, NULL));
    FAILS(INVALID_ARGUMENT,
          gpumem_buffer_from_pointer(device, pointer, 8 * MIB + 1, NULL, &buffer));
    OK(gpumem_buffer_free(inner, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_from_pointer(device, pointer, 1, NULL, &buffer));
    OK(gpumem_resource_destroy(resource));
}

/* No copy goes from one into the other; that is said when the buffer is made. */
static void refused_across(CUdeviceptr pointer, size_t each) {
    gpumem_buffer *buffer = NULL;
    char second[32];
    snprintf(second, sizeof second, "0x%llx on", pointer + each);
    FAILS_SAYING(INVALID_ARGUMENT, second,
                 gpumem_buffer_from_pointer(device, pointer, 2 * each, NULL, &buffer));
    SAYS("two allocations or registrations");
    FAILS(INVALID_ARGUMENT,
          gpumem_buffer_from_pointer(device, pointer + each - 1, 2, NULL, &buffer));
    assert_null(buffer);
    for (size_t i = 0; i < 2; i++) {
        buffer = over(pointer + i * each, each, NULL);
        OK(fill_now(buffer, 0, each, 1, NULL));
        OK(gpumem_buffer_free(buffer, NULL));
    }
}

TEST(a_range_over_two_registrations_is_refused) {
    const size_t each = 64 * KIB;
    unsigned char *pages =
        mmap(NULL, 2 * each, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    gpumem_buffer *half[2];
    for (size_t i = 0; i < 2; i++)
        half[i] =
            MADE(gpumem_buffer *, gpumem_buffer_register, device, pages + i * each, each, NULL);
    refused_across((CUdeviceptr)(uintptr_t)pages, each);
    DESTROY_EACH(half, 2);
    munmap(pages, 2 * each);
}

/* softgpu puts some of them side by side. */
TEST(a_range_over_two_allocations_is_refused) {
    enum { MOST = 64 };
    CUdeviceptr taken[MOST];
    size_t pairs = 0;
    for (size_t i = 0; i < MOST; i++)
        taken[i] = take(2 * MIB);
    for (size_t i = 0; i < MOST; i++)
        for (size_t k = 0; k < MOST && !pairs; k++)
            if (taken[k] == taken[i] + 2 * MIB) {
                refused_across(taken[i], 2 * MIB);
                pairs++;
            }
    assert_int_equal(pairs, 1);
    for (size_t i = 0; i < MOST; i++)
        OK_CU(cu->cuMemFree_v2(taken[i]));
}

TEST(memory_unknown_to_the_driver_is_refused) {
    char plain[KIB];
    CUdeviceptr pointer = take(2 * MIB);
    gpumem_buffer *buffer = NULL;
    CUdeviceptr host = (CUdeviceptr)(uintptr_t)plain;
    FAILS(INVALID_ARGUMENT, gpumem_buffer_from_pointer(device, host, KIB, NULL, &buffer));
    SAYS("neither device nor pinned nor managed");
    FAILS(INVALID_ARGUMENT, gpumem_buffer_from_pointer(device, 0, KIB, NULL, &buffer));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_from_pointer(device, pointer, 0, NULL, &buffer));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_from_pointer(device, pointer, SIZE_MAX, NULL, &buffer));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_from_pointer(device, pointer, 64 * MIB, NULL, &buffer));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_from_pointer(device, pointer, 1, NULL, NULL));
    assert_null(buffer);
    OK_CU(cu->cuMemFree_v2(pointer));
}

/* Host memory of another device's context is anybody's; its device memory is not. */
TEST(memory_of_another_device_is_refused) {
    gpumem_buffer *buffer = NULL;
    gpumem_device *other = MADE(gpumem_device *, gpumem_device_open, library, 1);
    OK_CU(cu->cuCtxPushCurrent_v2(gpumem_device_context(other)));
    CUdeviceptr pointer = take(KIB);
    void *pinned = MADE_CU(void *, cuMemHostAlloc, KIB, CU_MEMHOSTALLOC_PORTABLE);
    FAILS(NO_DEVICE, gpumem_buffer_from_pointer(device, pointer, KIB, NULL, &buffer));
    assert_null(buffer);
    OK(gpumem_buffer_from_pointer(other, pointer, KIB, NULL, &buffer));
    assert_int_equal(attributes_of(buffer).ordinal, 1);
    OK(gpumem_buffer_free(buffer, NULL));
    buffer = over((CUdeviceptr)(uintptr_t)pinned, KIB, NULL);
    assert_int_equal(attributes_of(buffer).ordinal, -1);
    OK(gpumem_buffer_free(buffer, NULL));
    OK_CU(cu->cuMemFree_v2(pointer));
    OK_CU(cu->cuMemFreeHost(pinned));
    CUcontext popped;
    cu->cuCtxPopCurrent_v2(&popped);
    OK(gpumem_device_close(other));
}

TEST(writing_read_only_foreign_memory_is_refused) {
    CUdeviceptr pointer = take(KIB);
    unsigned char bytes[KIB] = {0};
    gpumem_buffer *buffer = over(pointer, KIB, GPUMEM_FOREIGN_OPTIONS(.read_only = 1));
    gpumem_buffer *view = NEW_VIEW(buffer, 0, 16);
    gpumem_buffer *both[] = {buffer, view};
    for (size_t i = 0; i < COUNT(both); i++) {
        const gpumem_buffer_copy_item item = {both[i], 0, buffer, 0, 8};
        const gpumem_rows rows = {.width = 1, .count = 1};
        assert_int_equal(attributes_of(both[i]).read_only, 1);
        FAILS(NOT_PERMITTED, gpumem_buffer_fill(both[i], 0, 8, 1, NULL));
        FAILS(NOT_PERMITTED, gpumem_buffer_fill_pattern(both[i], 0, 8, bytes, 4, NULL));
        FAILS(NOT_PERMITTED, gpumem_buffer_write(both[i], 0, bytes, 8, NULL));
        FAILS(NOT_PERMITTED, gpumem_buffer_write_2d(both[i], 0, bytes, &rows, NULL));
        FAILS(NOT_PERMITTED, gpumem_buffer_copy(both[i], 0, buffer, 8, 8, NULL));
        FAILS(NOT_PERMITTED, gpumem_buffer_copy_2d(both[i], 0, buffer, 8, &rows, NULL));
        FAILS(NOT_PERMITTED, gpumem_buffer_copy_batch(&item, 1, NULL, NULL));
        OK(read_now(both[i], 0, bytes, 16, NULL));
    }
    DESTROY(view, buffer);
    OK_CU(cu->cuMemFree_v2(pointer));
}

/* ---- The deleter ----------------------------------------------------------------------------- */

struct deleted {
    int calls;
    CUdeviceptr pointer;
    size_t bytes;
    CUstream stream;
};

static void note(void *user, CUdeviceptr pointer, size_t bytes, CUstream stream) {
    struct deleted *deleted = user;
    CUcontext current = NULL;
    OK_CU(cu->cuCtxGetCurrent(&current));
    assert_ptr_equal(current, gpumem_device_context(device));
    *deleted = (struct deleted){deleted->calls + 1, pointer, bytes, stream};
    OK_CU(cu->cuMemFree_v2(pointer));
}

static void free_in_order(void *user, CUdeviceptr pointer, size_t bytes, CUstream stream) {
    struct deleted *deleted = user;
    *deleted = (struct deleted){deleted->calls + 1, pointer, bytes, stream};
    OK_CU(cu->cuMemFreeAsync(pointer, stream));
}

TEST(the_deleter_is_called_after_the_last_use) {
    struct deleted deleted = {0};
    struct gate gate = gate_with_stream();
    CUdeviceptr pointer = take(KIB);
    gpumem_buffer *view, *buffer = over(pointer, KIB,
                                        GPUMEM_FOREIGN_OPTIONS(.stream = GPUMEM_STREAM_NONE,
                                                               .deleter = note, .user = &deleted));
    OK(gpumem_buffer_fill(buffer, 0, KIB, 1, gate.stream));
    view = NEW_VIEW(buffer, 0, 1);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_device_trim(device, 0));
    assert_int_equal(deleted.calls, 0);
    OK(gpumem_buffer_free(view, NULL));
    OK(gpumem_device_trim(device, 0));
    assert_int_equal(deleted.calls, 0);
    assert_int_equal(device_stats().deferred_frees, 1);
    gate_drain(&gate);
    OK(gpumem_device_trim(device, 0));
    MEMBERS(deleted, (calls, 1), (pointer, pointer), (bytes, KIB));
    gate_remove(&gate);
}

/* The stream that it gets comes after the others, although nothing has waited. */
TEST(a_stream_ordered_deleter_is_called_at_once) {
    struct deleted deleted = {0};
    struct gate gate = gate_with_stream();
    bool done = 1;
    CUstream stream = NEW_STREAM();
    CUdeviceptr pointer = MADE_CU(CUdeviceptr, cuMemAllocAsync, KIB, stream);
    gpumem_buffer *buffer = over(pointer, KIB,
                                 GPUMEM_FOREIGN_OPTIONS(.stream = stream, .deleter = free_in_order,
                                                        .user = &deleted, .stream_ordered = 1));
    OK(gpumem_buffer_fill(buffer, 0, KIB, 1, gate.stream));
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(deleted.calls, 1);
    assert_ptr_equal(deleted.stream, stream);
    OK(gpumem_stream_query(device, stream, &done));
    assert_int_equal(done, 0); /* it waits for the gate */
    gate_drain(&gate);
    synchronize(stream);
    CUdeviceptr again = MADE_CU(CUdeviceptr, cuMemAllocAsync, KIB, stream);
    OK_CU(cu->cuMemFreeAsync(again, stream));
    DESTROY(stream, &gate);
}

TEST(a_refused_foreign_buffer_does_not_call_the_deleter) {
    struct deleted deleted = {0};
    gpumem_buffer *buffer = NULL;
    CUdeviceptr pointer = take(KIB);
    FAILS(INVALID_ARGUMENT,
          gpumem_buffer_from_pointer(device, pointer, 64 * MIB,
                                     GPUMEM_FOREIGN_OPTIONS(.deleter = note, .user = &deleted),
                                     &buffer));
    FAILS(INVALID_ARGUMENT,
          gpumem_buffer_from_pointer(device, pointer, KIB,
                                     GPUMEM_FOREIGN_OPTIONS(.stream = GPUMEM_STREAM_NONE,
                                                            .deleter = free_in_order,
                                                            .user = &deleted, .stream_ordered = 1),
                                     &buffer));
    FAILS(INVALID_ARGUMENT,
          gpumem_buffer_from_pointer(device, pointer, KIB,
                                     GPUMEM_FOREIGN_OPTIONS(.stream_ordered = 1), &buffer));
    assert_null(buffer);
    assert_int_equal(deleted.calls, 0);
    OK_CU(cu->cuMemFree_v2(pointer));
}

TEST(closing_the_device_waits_for_the_deleter) {
    struct deleted deleted = {0};
    gpumem_library *other;
    OK(gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = "softgpu"), &other));
    gpumem_device *device_again = MADE(gpumem_device *, gpumem_device_open, other, 0);
    gpumem_buffer *buffer =
        MADE(gpumem_buffer *, gpumem_buffer_from_pointer, device_again, take(KIB), KIB,
             GPUMEM_FOREIGN_OPTIONS(.deleter = note, .user = &deleted));
    OK(gpumem_buffer_fill(buffer, 0, KIB, 1, NULL));
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_device_close(device_again));
    assert_int_equal(deleted.calls, 1);
    OK(gpumem_close(other));
}

BEFORE_TESTS_DO(setenv("SOFTGPU_DEVICES", "2", 1));
