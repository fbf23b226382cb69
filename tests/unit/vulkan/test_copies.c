/* Copies of memory that Vulkan has mapped: imported and exported, coherent and not, by every plan.
 * With the test driver, and with Mesa's on the CPU. */
#include "kept_driver.h"
#include "lavapipe.h"
#include "mapped_copies.h"
#include "vulkan_test.h"

ALL_TESTS(find_icd, NULL);

static void copy_by(gpumem_mapped_method method, bool coherent) {
    struct copies c;
    gpumem_mapped_info info = {.size = sizeof info};
    gpumem_resource *mapped = NEW_MAPPED(.method = method, .method_strict = 1);
    OK(gpumem_mapped_get_info(mapped, &info));
    MEMBERS(info, (method, method), (coherent, coherent));
    gpumem_buffer *buffer = NEW_BUFFER(mapped, COPIES_ROOM);
    copies_begin(&c, buffer, mapped->engine);
    copies_by_all_plans(&c, 200);
    copies_end(&c);
    DESTROY(buffer, mapped);
    assert_int_equal(device_stats().quarantined, 0);
}

static void write_uuid(const unsigned char uuid[16], const char *variable) {
    char text[33];
    for (size_t i = 0; i < 16; i++)
        snprintf(text + 2 * i, 3, "%02x", uuid[i]);
    setenv(variable, text, 1);
}

/* softgpu reads its UUID once: the test driver has what that is. */
static int setup(void **state) {
    CUuuid uuid;
    gm_plans_for_tests();
    start_with_icd(state);
    if (open_device(state) != 0 || cu->cuDeviceGetUuid_v2(&uuid, device->handle) != CUDA_SUCCESS)
        return -1;
    write_uuid((const unsigned char *)uuid.bytes, "VULKAN_ICD_UUID");
    return 0;
}

EACH_TEST(setup, close_device);

TEST_WITH(copies_of_lavapipe_memory_are_correct_by_every_plan, NULL, NULL) {
    unsigned char uuid[16];
    if (!find_lavapipe(uuid))
        skip();
    write_uuid(uuid, "SOFTGPU_UUID");
    choose_vulkan(NULL);
    gm_plans_for_tests();
    assert_int_equal(open_device(state), 0);
    copy_by(GPUMEM_MAPPED_VULKAN_EXPORT, true);
    assert_int_equal(close_device(state), 0);
    unsetenv("SOFTGPU_UUID");
}

TEST(copies_of_imported_memory_are_correct_by_every_plan) {
    copy_by(GPUMEM_MAPPED_VULKAN_IMPORT, true);
    assert_nothing_left();
}

TEST(copies_of_exported_memory_are_correct_by_every_plan) {
    copy_by(GPUMEM_MAPPED_VULKAN_EXPORT, true);
    assert_nothing_left();
}

/* What is stored reaches the memory with the flush alone, and the other way round. */
TEST(copies_of_non_coherent_memory_are_flushed) {
    setenv("VULKAN_ICD_COHERENT", "no", 1);
    copy_by(GPUMEM_MAPPED_VULKAN_IMPORT, false);
    copy_by(GPUMEM_MAPPED_VULKAN_EXPORT, false);
    assert_nothing_left();
}

/* Stores that were not flushed yet are part of what this thread reads. */
TEST(a_read_returns_the_threads_unflushed_stores) {
    struct copies c;
    char back[8] = "";
    setenv("VULKAN_ICD_COHERENT", "no", 1);
    gpumem_resource *mapped = NEW_MAPPED(.method = GPUMEM_MAPPED_VULKAN_IMPORT, .method_strict = 1);
    gpumem_buffer *buffer = NEW_BUFFER(mapped, COPIES_ROOM);
    copies_begin(&c, buffer, mapped->engine);
    copies_use(&c, GM_COPY_PLAIN, 1, 1);
    memcpy((char *)gpumem_buffer_host_pointer(buffer) + 100, "stored", 7);
    OK(gpumem_mapped_read(buffer, 100, back, 7));
    assert_string_equal(back, "stored");
    copies_end(&c);
    DESTROY(buffer, mapped);
    assert_nothing_left();
}

BEFORE_TESTS_DO(keep_lavapipe_loaded());
