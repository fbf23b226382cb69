/* vkgdr's interface with each call of each of its two drivers failing: whole or nothing. */
#include "library_sweeps.h"
#include "vkgdr/internal.h"
#include "vkgdr_test.h"

EACH_TEST(start_with_context, NULL);

/* Of Vulkan's registry. */
#define VK_ERROR_OUT_OF_HOST_MEMORY    (-1)
#define VK_ERROR_INITIALIZATION_FAILED (-3)
#define VK_ERROR_DEVICE_LOST           (-4)

struct subject {
    vkgdr_t g;
};

/* ---- Acts: 0, or 1 with an error to show ----------------------------------------------------- */

static int refused(void) {
    char *text = vkgdr_last_error();
    bool told = text && text[0];
    free(text);
    assert_true(told);
    return 1;
}

static int open_and_close(void *user) {
    vkgdr_t g = vkgdr_open(0, VKGDR_OPEN_CURRENT_CONTEXT_BIT);
    if (!g)
        return refused();
    vkgdr_close(g);
    return 0;
}

static int allocate_and_free(vkgdr_t g, size_t size) {
    vkgdr_memory_t memory = vkgdr_memory_alloc(g, size, 0);
    if (!memory)
        return refused();
    vkgdr_memory_free(memory);
    return 0;
}

static int large(void *user) {
    return allocate_and_free(((struct subject *)user)->g, MIB);
}

static int small(void *user) {
    return allocate_and_free(((struct subject *)user)->g, 64);
}

/* So many that a second slab is made, which is kept for a while when it is empty. */
static int several(void *user) {
    vkgdr_memory_t memory[12] = {NULL};
    int failed = 0;
    for (size_t i = 0; i < COUNT(memory) && !failed; i++) {
        memory[i] = vkgdr_memory_alloc(((struct subject *)user)->g, 200 * KIB, 0);
        failed = memory[i] ? 0 : refused();
    }
    for (size_t i = COUNT(memory); i-- > 0;)
        vkgdr_memory_free(memory[i]);
    return failed;
}

/* ---- CUDA ------------------------------------------------------------------------------------ */

static uint64_t lost(void *user) {
    return gm_vkgdr_lost();
}

/* Vulkan's part is given back whatever CUDA answers. */
static void check_vulkan(void *user) {
    assert_used_well();
    MEMBERS(icd->live(), (memories, 0), (maps, 0));
}

static void sweep_cuda(const char *name, int (*act)(void *), struct subject *subject) {
    sweep_run(&(struct sweep){.name = name,
                              .act = act,
                              .recover = check_vulkan,
                              .undo = check_vulkan,
                              .may_succeed = true, /* a free reports nothing */
                              .lost = lost,
                              .user = subject});
}

TEST(a_failing_cuda_call_leaks_nothing) {
    struct subject subject = {.g = NULL};
    sweep_cuda("vkgdr_open", open_and_close, &subject);
    subject.g = open_gpu(0);
    sweep_cuda("a large buffer", large, &subject);
    sweep_cuda("a small buffer", small, &subject);
    sweep_cuda("small buffers", several, &subject);
    vkgdr_close(subject.g);
}

/* ---- Vulkan ---------------------------------------------------------------------------------- */

/* One run with `count` calls of Vulkan refused from this one on. True if the act failed. */
static bool run_vulkan(const char *name, int (*act)(void *), struct subject *subject, unsigned call,
                       unsigned count, int result) {
    char *before = soft->state_dump();
    size_t descriptors = open_descriptors();
    struct vulkan_icd_live live = icd->live();
    icd->reset();
    icd->refuse(NULL, call, count, result);
    bool failed = act(subject) != 0;
    if (failed == (icd->calls(NULL) < call))
        fail_msg("%s, call %u of Vulkan: it %s", name, call,
                 failed ? "fails without a fault" : "reports success");
    assert_used_well();
    icd->reset();
    SAME_STATE(before);
    assert_int_equal(open_descriptors(), descriptors);
    struct vulkan_icd_live after = icd->live();
    assert_memory_equal(&after, &live, sizeof live);
    return failed;
}

/* Runs the act with the first call of Vulkan failing, then the second, until none is left to fail;
 * alone, and with all calls after it. */
static void sweep_vulkan(const char *name, int (*act)(void *), struct subject *subject) {
    static const int results[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_INITIALIZATION_FAILED,
                                  VK_ERROR_DEVICE_LOST, -99};
    for (size_t r = 0; r < COUNT(results); r++)
        for (unsigned count = 1; count; count = count == 1 ? UINT32_MAX : 0) {
            unsigned call = 1;
            while (run_vulkan(name, act, subject, call, count, results[r]))
                call++;
            assert_true(call > 1);
        }
}

TEST(a_failing_vulkan_call_leaks_nothing) {
    struct subject subject = {.g = NULL};
    sweep_vulkan("vkgdr_open", open_and_close, &subject);
    subject.g = open_gpu(0);
    sweep_vulkan("a large buffer", large, &subject);
    sweep_vulkan("a small buffer", small, &subject);
    sweep_vulkan("small buffers", several, &subject);
    vkgdr_close(subject.g);
    assert_nothing_left();
}

static int begin(void **state) {
    assert_int_equal(setenv("GPUMEM_DRIVER", "softgpu", 1), 0);
    return begin_sweeps(state) != 0 ? -1 : find_icd(state);
}

ALL_TESTS(begin, end_sweeps);
