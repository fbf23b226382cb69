/* The Vulkan driver of the device, as the library reports it, on any driver. */
#include "kept_driver.h"
#include "library.h"

TEST(reported_vulkan_properties_are_consistent) {
    gpumem_vulkan_info info = {.size = sizeof info}, again = {.size = sizeof again};
    keep_lavapipe_loaded();
    open_library();
    OK(gpumem_device_get_vulkan_info(library, 0, &info));
    OK(gpumem_device_get_vulkan_info(library, 0, &again));
    close_library();
    assert_int_equal(again.available, info.available);
    if (!info.available)
        SKIP("%s", info.reason);
    print_message("%s: %s, type %d, %s, placed %d, heap %llu, budget %llu, used %llu\n",
                  info.library, info.device_name, info.memory_type,
                  info.coherent ? "coherent" : "not coherent", info.placed,
                  (unsigned long long)info.heap_bytes, (unsigned long long)info.budget_bytes,
                  (unsigned long long)info.used_bytes);
    assert_true(info.memory_type >= 0);
    assert_true(info.atom >= 1);
    assert_true(info.heap_bytes > 0);
    assert_true(info.allocation_limit > 0);
    if (info.has_budget)
        assert_in_range(info.budget_bytes, 1, info.heap_bytes);
}
