/* Shared by tests of Vulkan: selects and inspects the test driver; used together with cmocka's
 * headers. */
#ifndef TESTS_VULKAN_TEST_H
#define TESTS_VULKAN_TEST_H

#include "descriptors.h"
#include "library_test.h"
#include "vulkan_icd.h"

#include <dlfcn.h>

/* The UUID of softgpu's device 0, which the test driver's device has by default. */
static const unsigned char softgpu_uuid[16] = {0x73, 0x6f, 0x66, 0x74, 0x67,
                                               0x70, 0x80, 0x75, 0x80};

static const struct vulkan_icd_control *icd;

static inline void choose_vulkan(const char *path) {
    assert_int_equal(path ? setenv("GPUMEM_VULKAN", path, 1) : unsetenv("GPUMEM_VULKAN"), 0);
}

/* Selects the test driver, with its default behaviour. */
static inline void choose_icd(void) {
    static const char *const settings[] = {
        "VULKAN_ICD_UUID",        "VULKAN_ICD_COHERENT", "VULKAN_ICD_PLACED",
        "VULKAN_ICD_ALLOCATIONS", "VULKAN_ICD_BUDGET",   "VULKAN_ICD_HEAP",
        "VULKAN_ICD_WITHOUT",     "VULKAN_ICD_FAULT",    "VULKAN_ICD_ATOM"};
    for (size_t i = 0; i < COUNT(settings); i++)
        unsetenv(settings[i]);
    choose_vulkan(GPUMEM_BINARY_DIR VULKAN_ICD_FILE);
}

/* For cmocka's setup of a group. */
static inline int find_icd(void **state) {
    const struct vulkan_icd_control *(*get)(void);
    void *file = dlopen(GPUMEM_BINARY_DIR VULKAN_ICD_FILE, RTLD_NOW | RTLD_LOCAL);
    void *symbol = file ? dlsym(file, "vulkan_icd_control") : NULL;
    if (!symbol) {
        print_error("the test driver cannot be opened: %s\n", dlerror());
        return -1;
    }
    memcpy(&get, &symbol, sizeof get);
    icd = get();
    return 0;
}

/* For cmocka's setup of a test. */
static inline int start_with_icd(void **state) {
    choose_icd();
    icd->reset();
    return 0;
}

/* Checks that the test driver was used as Vulkan requires. */
static inline void assert_used_well(void) {
    if (icd->violation())
        fail_msg("the test driver was misused: %s", icd->violation());
}

/* And that nothing of it is left. */
static inline void assert_nothing_left(void) {
    struct vulkan_icd_live live = icd->live();
    assert_used_well();
    assert_int_equal(live.maps, 0);
    assert_int_equal(live.memories, 0);
    assert_int_equal(live.devices, 0);
    assert_int_equal(live.instances, 0);
}

/* For its teardown. */
static inline int end_with_icd(void **state) {
    assert_nothing_left();
    return 0;
}

#endif
