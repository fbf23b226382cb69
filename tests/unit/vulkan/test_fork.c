/* A forked child uses nothing of its parent's Vulkan, and does not wait for its locks. */
#include "forked_child.h"
#include "vulkan/device.h"
#include "vulkan_test.h"

#include <pthread.h>
#include <sys/wait.h>

ALL_TESTS(find_icd, NULL);

EACH_TEST(start_with_icd, end_with_icd);

static int exit_of(pid_t child) {
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static const int first_line = __LINE__;

/* Before anything else of this program, so that no library was opened. */
TEST(a_child_forked_before_the_first_open_may_open) {
    pid_t child = fork();
    if (child == 0) {
        struct gm_vulkan *vulkan;
        HOLDS(gm_vulkan_open(softgpu_uuid, &vulkan, NULL, 0) == GPUMEM_OK);
        gm_vulkan_close(vulkan);
        _exit(0);
    }
    assert_int_equal(exit_of(child), 0);
}

static void use_what_the_parent_has(struct gm_vulkan *vulkan, struct gm_vulkan_memory *memory) {
    struct gm_vulkan *own = NULL;
    struct gm_vulkan_memory *more = NULL;
    void *host = NULL;
    int fd = -1;
    uint64_t budget, usage;
    char reason[200] = "";
    HOLDS(gm_vulkan_open(softgpu_uuid, &own, reason, sizeof reason) == GPUMEM_ERROR_FORKED);
    HOLDS(strstr(reason, "parent"));
    HOLDS(gm_vulkan_allocate(vulkan, 4096, 0, &more) == GPUMEM_ERROR_FORKED);
    HOLDS(gm_vulkan_import(vulkan, 0, 4096, 0, &more) == GPUMEM_ERROR_FORKED);
    HOLDS(gm_vulkan_get_budget(vulkan, &budget, &usage) == GPUMEM_ERROR_FORKED);
    HOLDS(gm_vulkan_export(memory, &fd) == GPUMEM_ERROR_FORKED);
    HOLDS(gm_vulkan_map(memory, NULL, &host) == GPUMEM_ERROR_FORKED);
    HOLDS(gm_vulkan_flush(memory, 0, 1) == GPUMEM_ERROR_FORKED);
    HOLDS(gm_vulkan_invalidate(memory, 0, 1) == GPUMEM_ERROR_FORKED);
    HOLDS(gm_vulkan_unmap(memory) == GPUMEM_ERROR_FORKED);
    HOLDS(gm_vulkan_free(memory) == GPUMEM_ERROR_FORKED);
    gm_vulkan_close(vulkan);
    HOLDS(!own && !more && !host && fd == -1);
    HOLDS(icd->calls(NULL) == 0);
    struct vulkan_icd_live live = icd->live();
    HOLDS(live.memories == 1 && live.maps == 1 && live.devices == 1);
}

TEST(a_child_forked_after_an_open_is_refused) {
    struct gm_vulkan *vulkan;
    struct gm_vulkan_memory *memory;
    void *host;
    OK(gm_vulkan_open(softgpu_uuid, &vulkan, NULL, 0));
    OK(gm_vulkan_allocate(vulkan, 4096, GM_VULKAN_FORCE_NON_COHERENT, &memory));
    OK(gm_vulkan_map(memory, NULL, &host));
    icd->reset();
    pid_t child = fork();
    if (child == 0) {
        use_what_the_parent_has(vulkan, memory);
        _exit(0);
    }
    assert_int_equal(exit_of(child), 0);
    memset(host, 1, 4096); /* the parent's is as it was */
    OK(gm_vulkan_flush(memory, 0, 4096));
    OK(gm_vulkan_free(memory));
    gm_vulkan_close(vulkan);
}

/* Other threads hold the locks at the moment of some of these forks. */
static int over;
static void *open_and_close(void *data) {
    struct gm_vulkan *vulkan;
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
        if (gm_vulkan_open(softgpu_uuid, &vulkan, NULL, 0) == GPUMEM_OK)
            gm_vulkan_close(vulkan);
    return NULL;
}

TEST(children_forked_while_threads_open_do_not_hang) {
    pthread_t threads[2];
    struct gm_vulkan *vulkan;
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, NULL), 0);
    for (int round = 0; round < 50; round++) {
        pid_t child = fork();
        if (child == 0) {
            HOLDS(gm_vulkan_open(softgpu_uuid, &vulkan, NULL, 0) == GPUMEM_ERROR_FORKED);
            _exit(0);
        }
        assert_int_equal(exit_of(child), 0);
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
}
