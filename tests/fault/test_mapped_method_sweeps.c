/*
 * Whole or nothing, for memory that Vulkan or a dma-buf maps: each call of CUDA's driver in each
 * step fails, and neither driver is left with anything.
 */
#include "mapped_acts.h"

EACH_TEST(start_with_icd, NULL);

/* Of the test driver, without the act. */
static struct vulkan_icd_live usual;

/* Vulkan gives its part back whatever CUDA answers. */
static void check(void *user) {
    end_what_is_left(user);
    settle(user);
    assert_used_well();
    const struct vulkan_icd_live now = icd->live();
    if (memcmp(&now, &usual, sizeof now) != 0)
        fail_msg("alive %zu %zu %zu %zu, were %zu %zu %zu %zu", now.instances, now.devices,
                 now.memories, now.maps, usual.instances, usual.devices, usual.memories,
                 usual.maps);
}

static void sweep_method(gpumem_mapped_method method) {
    struct subject s;
    begin_subject(&s, method);
    usual = icd->live();
    for (size_t i = 0; i < COUNT(mapped_acts); i++) {
        char name[64];
        if (!has_act(method, &mapped_acts[i]))
            continue;
        snprintf(name, sizeof name, "%s, %s", gpumem_mapped_method_name(method),
                 mapped_acts[i].name);
        SWEEP(.name = name, .act = mapped_acts[i].act, .recover = check, .undo = check,
              .may_succeed = true, .user = &s);
    }
    end_subject(&s);
}

TEST_IS(cuda_failures_leak_nothing_with_vulkan_import, sweep_method(GPUMEM_MAPPED_VULKAN_IMPORT));
TEST_IS(cuda_failures_leak_nothing_with_vulkan_export, sweep_method(GPUMEM_MAPPED_VULKAN_EXPORT));
TEST_IS(cuda_failures_leak_nothing_with_dma_buf, sweep_method(GPUMEM_MAPPED_DMA_BUF));

static int begin(void **state) {
    setenv("SOFTGPU_PROFILE", "dmabuf", 1);
    return begin_sweeps(state) != 0 ? -1 : find_icd(state);
}

ALL_TESTS(begin, end_sweeps);
