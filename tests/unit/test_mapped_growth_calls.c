/* What mapped memory asks of the driver and of Vulkan as it comes and grows: the calls that a
 * program would make by hand, and none besides. */
#include "vulkan_test.h"

#define GROWN (6 * MIB)

static int setup(void **state) {
    if (find_icd(state) != 0 || open_device(state) != 0)
        return -1;
    /* As a program has it that makes the calls by hand. */
    return cu->cuCtxPushCurrent_v2(gpumem_device_context(device)) == CUDA_SUCCESS ? 0 : -1;
}

AFTER(close_device) {
    CUcontext context;
    cu->cuCtxPopCurrent_v2(&context);
}

ALL_TESTS(setup, after);

/* ---- Counting -------------------------------------------------------------------------------- */

static const char *const functions[] = {
#define CU_FN(symbol, ...) #symbol,
#include <gpumem/functions.def>
};

static uint64_t before[COUNT(functions)];

static void begin_count(void) {
    for (size_t i = 0; i < COUNT(functions); i++)
        before[i] = soft->call_count(functions[i]);
    icd->reset();
}

struct wanted {
    const char *function;
    unsigned calls;
};

/* What every operation asks besides, 7 ns an exchange on an H200: which context is current, and
 * that a capture in another thread is not in the way. */
static uint64_t calls_of_guard(const char *function) {
    return strcmp(function, "cuCtxGetCurrent") == 0                     ? 1
           : strcmp(function, "cuThreadExchangeStreamCaptureMode") == 0 ? 2
                                                                        : 0;
}

/* These calls of the driver, and the guard's. */
static void check_driver(const struct wanted *wanted, size_t count) {
    for (size_t i = 0; i < COUNT(functions); i++) {
        uint64_t calls = soft->call_count(functions[i]) - before[i];
        uint64_t want = calls_of_guard(functions[i]);
        for (size_t w = 0; w < count; w++)
            if (strcmp(functions[i], wanted[w].function) == 0)
                want = wanted[w].calls;
        if (calls != want)
            fail_msg("%s: %llu calls, by hand %llu", functions[i], (unsigned long long)calls,
                     (unsigned long long)want);
    }
}

static void check_vulkan(unsigned chunks) {
    assert_int_equal(icd->calls("vkAllocateMemory"), chunks);
    assert_int_equal(icd->calls("vkMapMemory2KHR"), chunks);
    assert_int_equal(icd->calls(NULL), 2 * chunks);
    assert_used_well();
}

/* ---- Growth ---------------------------------------------------------------------------------- */

static gpumem_resource *open_mapped(gpumem_mapped_method method, size_t chunk) {
    return NEW_MAPPED(.method = method, .method_strict = 1, .maximum_chunk_bytes = chunk);
}

static void grows(gpumem_mapped_method method) {
    static const struct wanted calls[] = {{"cuMemCreate", 1},
                                          {"cuMemMap", 1},
                                          {"cuMemSetAccess", 1},
                                          {"cuMemExportToShareableHandle", 1}};
    gpumem_resource *mapped = open_mapped(method, 0);
    gpumem_buffer *buffer =
        NEW_BUFFER_WITH(mapped, 2 * MIB, .stream = GPUMEM_STREAM_NONE, .capacity = GROWN);
    for (size_t bytes = 4 * MIB; bytes <= GROWN; bytes += 2 * MIB) {
        begin_count();
        OK(gpumem_buffer_grow(buffer, bytes, NULL));
        check_driver(calls, COUNT(calls));
        check_vulkan(method == GPUMEM_MAPPED_VULKAN_IMPORT);
    }
    OK(gpumem_buffer_free(buffer, GPUMEM_STREAM_NONE));
    OK(gpumem_resource_destroy(mapped));
}

TEST_IS(growing_by_vulkan_import_makes_no_superfluous_call, grows(GPUMEM_MAPPED_VULKAN_IMPORT));
TEST_IS(growing_by_descriptor_makes_no_superfluous_call, grows(GPUMEM_MAPPED_DESCRIPTOR));

/* Many pieces: access is given to all of them at once. */
TEST(allocating_many_chunks_sets_their_access_in_one_call) {
    static const struct wanted calls[] = {{"cuMemAddressReserve", 1},
                                          {"cuMemCreate", 8},
                                          {"cuMemMap", 8},
                                          {"cuMemSetAccess", 1},
                                          {"cuMemExportToShareableHandle", 8}};
    gpumem_resource *mapped = open_mapped(GPUMEM_MAPPED_VULKAN_IMPORT, 4 * MIB);
    begin_count();
    gpumem_buffer *buffer = NEW_BUFFER_WITH(mapped, 32 * MIB, .stream = GPUMEM_STREAM_NONE);
    check_driver(calls, COUNT(calls));
    check_vulkan(8);
    OK(gpumem_buffer_free(buffer, GPUMEM_STREAM_NONE));
    OK(gpumem_resource_destroy(mapped));
}

BEFORE_TESTS_DO(choose_icd());
