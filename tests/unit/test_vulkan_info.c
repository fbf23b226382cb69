/* What a program is told of a device's Vulkan driver: with the test driver, which has softgpu's
 * first device. */
#include "vulkan_test.h"

ALL_TESTS(open_device, close_device);

EACH_TEST(start_with_icd, NULL);

static gpumem_vulkan_info query(void) {
    gpumem_vulkan_info info = {.size = sizeof info};
    OK(gpumem_device_get_vulkan_info(library, 0, &info));
    assert_nothing_left();
    return info;
}

TEST(the_vulkan_device_is_described) {
    setenv("VULKAN_ICD_BUDGET", "4194304", 1);
    gpumem_vulkan_info info = query();
    assert_int_equal(info.available, 1);
    assert_string_equal(info.reason, "");
    assert_string_equal(info.library, GPUMEM_BINARY_DIR VULKAN_ICD_FILE);
    assert_string_equal(info.device_name, "test driver, device 0");
    MEMBERS(info, (memory_type, 2), (coherent, 1), (placed, 1), (atom, VULKAN_ICD_ATOM),
            (heap_bytes, GIB), (has_budget, 1), (budget_bytes, 4 * MIB), (used_bytes, 0));
    assert_int_equal(info.allocation_limit, 4096);
}

TEST(a_missing_vulkan_driver_is_explained) {
    gpumem_status before = gpumem_device_get_vulkan_info(library, 7, NULL);
    FAILS(NO_DEVICE, before);
    choose_vulkan("/nowhere/libvulkan.so");
    gpumem_vulkan_info info = query();
    MEMBERS(info, (available, 0), (memory_type, -1));
    assert_non_null(strstr(info.reason, "/nowhere/libvulkan.so: "));
    assert_string_equal(info.library, "");
    SAYS("device 7"); /* an answer is no failure: the last one is remembered */
}

/* A driver that has the device, and no memory in it that the CPU could map. */
TEST(a_vulkan_device_without_mappable_memory_is_explained) {
    setenv("VULKAN_ICD_COHERENT", "none", 1);
    gpumem_vulkan_info info = query();
    assert_int_equal(info.available, 0);
    assert_string_equal(info.device_name, "test driver, device 0");
    assert_non_null(strstr(info.reason, "no device memory type that the CPU can map"));
    assert_int_equal(info.heap_bytes, 0);
}

TEST(invalid_arguments_are_refused) {
    gpumem_vulkan_info info = {.size = 3};
    FAILS(INVALID_ARGUMENT, gpumem_device_get_vulkan_info(NULL, 0, &info));
    FAILS(INVALID_ARGUMENT, gpumem_device_get_vulkan_info(library, 0, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_device_get_vulkan_info(library, 0, &info));
    FAILS(NO_DEVICE, gpumem_device_get_vulkan_info(library, -1, &info));
}

BEFORE_TESTS {
    if (find_icd(NULL) != 0)
        return 1;
    return 0;
}
