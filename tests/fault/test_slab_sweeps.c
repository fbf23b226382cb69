/* Small mapped buffers: each driver call and each call of Vulkan on the way to a slab and back
 * fails, and nothing of it is left, nor counted against the maximum. */
#include "library_sweeps.h"
#include "vulkan_test.h"

#define MAXIMUM (8 * MIB)
/* What a driver that refuses everything keeps stays within the maximum: room for a sweep of it. */
#define AMPLE (64 * GIB)

struct subject {
    gpumem_resource *resource;
    CUstream stream;
};

static const gpumem_mapped_options by_descriptor = {.size = sizeof by_descriptor,
                                                    .method = GPUMEM_MAPPED_DESCRIPTOR,
                                                    .method_strict = 1,
                                                    .maximum_bytes = MAXIMUM};
static const gpumem_mapped_options by_import = {.size = sizeof by_import,
                                                .method = GPUMEM_MAPPED_VULKAN_IMPORT,
                                                .method_strict = 1,
                                                .cache_bytes = 2 * MIB,
                                                .maximum_bytes = MAXIMUM};
static const gpumem_mapped_options by_export = {.size = sizeof by_export,
                                                .method = GPUMEM_MAPPED_VULKAN_EXPORT,
                                                .method_strict = 1,
                                                .maximum_bytes = MAXIMUM};
static const gpumem_mapped_options flushed = {.size = sizeof flushed,
                                              .method = GPUMEM_MAPPED_VULKAN_EXPORT,
                                              .method_strict = 1,
                                              .force_non_coherent = 1,
                                              .maximum_bytes = MAXIMUM};

/* Written, read back, and behind the stream freed. */
static gpumem_status one(struct subject *s, size_t bytes) {
    uint32_t word = (uint32_t)bytes, back = 0;
    gpumem_buffer *buffer = NULL;
    gpumem_status status = gpumem_buffer_allocate(
        s->resource, bytes, GPUMEM_BUFFER_OPTIONS(.stream = s->stream), &buffer);
    if (status != GPUMEM_OK)
        return status;
    status = gpumem_mapped_write(buffer, bytes - 4, &word, sizeof word);
    AND_THEN(status, gpumem_mapped_read(buffer, bytes - 4, &back, sizeof back));
    assert_true(status != GPUMEM_OK || back == word);
    gpumem_status freed = gpumem_buffer_free(buffer, s->stream);
    return status == GPUMEM_OK ? freed : status;
}

/* Of both kinds of slabs, a second time out of what the first left, and given back. */
static int small_buffers(void *user) {
    static const size_t sizes[] = {100, 4000, 300000, 100, 500000};
    struct subject *s = user;
    gpumem_status status = GPUMEM_OK;
    for (size_t i = 0; i < COUNT(sizes) && status == GPUMEM_OK; i++)
        status = one(s, sizes[i]);
    gpumem_status trimmed = gpumem_resource_trim(s->resource, 0);
    return (int)(status == GPUMEM_OK ? trimmed : status);
}

static int create(void *user) {
    struct subject *s = user;
    return (int)gpumem_mapped_resource_create(device, &by_descriptor, &s->resource);
}

static void destroy(void *user) {
    OK(gpumem_resource_destroy(((struct subject *)user)->resource));
    settle(user);
}

/* ---- Calls of the driver --------------------------------------------------------------------- */

TEST(creating_a_mapped_resource_with_slabs_is_all_or_nothing) {
    struct subject s = {0};
    sweep_act("a mapped resource with slabs", create, destroy, &s);
}

static void prepare(void *user) {
    assert_int_equal(create(user), 0);
}

static void end(void *user) {
    struct subject *s = user;
    settle(user);
    (void)gpumem_resource_destroy(s->resource);
    s->resource = NULL;
}

/* A slab has to go for the second. Warming up is without the preparation. */
static int slabs_make_room(void *user) {
    struct subject *s = user;
    if (!s->resource)
        prepare(s);
    gpumem_status status = one(s, 100);
    return (int)(status == GPUMEM_OK ? one(s, MAXIMUM) : status);
}

TEST(trimming_to_make_room_for_a_slab_is_all_or_nothing) {
    struct subject s = {.stream = NULL};
    SWEEP(.name = "a slab that makes room", .prepare = prepare, .act = slabs_make_room,
          .recover = end, .undo = end, .may_succeed = true, .user = &s);
}

static void sweep_driver(const char *name, const gpumem_mapped_options *given) {
    struct subject s = {0};
    gpumem_mapped_options options = *given;
    options.maximum_bytes = AMPLE;
    OK(gpumem_mapped_resource_create(device, &options, &s.resource));
    s.stream = NEW_STREAM();
    sweep_act(name, small_buffers, NULL, &s);
    (void)gpumem_resource_destroy(s.resource);
    OK(gpumem_stream_destroy(device, s.stream));
}

TEST_IS(slabs_of_mapped_descriptors_are_all_or_nothing,
        sweep_driver("small buffers of mapped descriptors", &by_descriptor));
TEST_IS(slabs_of_imported_vulkan_memory_are_all_or_nothing,
        sweep_driver("small buffers of imported memory", &by_import));
TEST_IS(slabs_of_exported_vulkan_memory_are_all_or_nothing,
        sweep_driver("small buffers of exported memory", &by_export));

/* ---- Calls of Vulkan ------------------------------------------------------------------------- */

static void assert_all_is_free(struct subject *s, size_t memories) {
    OK(gpumem_resource_trim(s->resource, 0));
    assert_int_equal(icd->live().memories, memories);
    assert_used_well();
    gpumem_buffer *buffer = NEW_BUFFER_WITH(s->resource, MAXIMUM, .stream = GPUMEM_STREAM_NONE);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_resource_trim(s->resource, 0));
    assert_int_equal(icd->live().memories, memories);
}

/* Whether there was such a call. */
static bool run(struct subject *s, const char *function, unsigned call, unsigned count,
                size_t memories) {
    icd->reset();
    icd->refuse(function, call, count, -2 /* out of device memory */);
    gpumem_status status = (gpumem_status)small_buffers(s);
    bool reached = icd->calls(function) >= call;
    icd->refuse(NULL, 1, 0, 0);
    if (status != GPUMEM_OK)
        SAYS(" answered VK_");
    if (reached && status == GPUMEM_OK && count == UINT32_MAX)
        fail_msg("succeeded although call %u of %s and all later ones were refused", call,
                 function);
    assert_all_is_free(s, memories);
    return reached;
}

/* Not those that unmap: what stays mapped stays. */
static void sweep_vulkan(const gpumem_mapped_options *options, const char *const functions[]) {
    struct subject s = {.stream = GPUMEM_STREAM_NONE};
    OK(gpumem_mapped_resource_create(device, options, &s.resource));
    size_t memories = icd->live().memories;
    for (size_t i = 0; functions[i]; i++)
        for (unsigned count = 1; count; count = count == 1 ? UINT32_MAX : 0) {
            unsigned call = 1;
            while (run(&s, functions[i], call, count, memories))
                call++;
            if (call == 1)
                fail_msg("%s is not called", functions[i]);
        }
    OK(gpumem_resource_destroy(s.resource));
}

TEST(a_slab_survives_each_failed_vulkan_call) {
    setenv("VULKAN_ICD_COHERENT", "both", 1);
    sweep_vulkan(&by_import, (const char *const[]){"vkAllocateMemory", "vkMapMemory2KHR", NULL});
    sweep_vulkan(&by_export, (const char *const[]){"vkAllocateMemory", "vkMapMemory",
                                                   "vkGetMemoryFdKHR", NULL});
    sweep_vulkan(&flushed, (const char *const[]){"vkAllocateMemory", "vkMapMemory",
                                                 "vkGetMemoryFdKHR", "vkFlushMappedMemoryRanges",
                                                 "vkInvalidateMappedMemoryRanges", NULL});
    unsetenv("VULKAN_ICD_COHERENT");
}

static int begin(void **state) {
    choose_icd();
    if (find_icd(state) != 0)
        return -1;
    return begin_sweeps(state);
}

ALL_TESTS(begin, end_sweeps);
