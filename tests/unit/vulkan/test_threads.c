/* Many threads open, allocate, import, map, write and free at once; and several use one memory. */
#include "vulkan/device.h"
#include "vulkan_test.h"

#include <pthread.h>

ALL_TESTS(find_icd, NULL);

EACH_TEST(start_with_icd, end_with_icd);

#define THREADS 16
#define ROUNDS  30
#define SIZE    ((size_t)2 * VULKAN_ICD_PLACE_MULTIPLE)

static void start(pthread_t threads[THREADS], void *(*run)(void *), void *data, size_t step) {
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, (char *)data + i * step), 0);
}

/* The first message of each, or "". */
static void finish(pthread_t threads[THREADS]) {
    for (size_t i = 0; i < THREADS; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        if (failed)
            fail_msg("thread %zu: line %zd", i, (intptr_t)failed);
    }
}

/* cmocka's checks are for the main thread. */
#define STEP(call)                                                                                 \
    do {                                                                                           \
        if ((call) != GPUMEM_OK)                                                                   \
            return (void *)(intptr_t)__LINE__;                                                     \
    } while (0)

static void *a_life(void *data) {
    unsigned char mark = *(unsigned char *)data;
    for (int round = 0; round < ROUNDS; round++) {
        struct gm_vulkan *vulkan;
        struct gm_vulkan_memory *made, *taken;
        void *host, *again;
        int fd;
        STEP(gm_vulkan_open(softgpu_uuid, &vulkan, NULL, 0));
        STEP(gm_vulkan_allocate(vulkan, SIZE, 0, &made));
        STEP(gm_vulkan_export(made, &fd));
        STEP(gm_vulkan_import(vulkan, fd, SIZE, GM_VULKAN_FORCE_NON_COHERENT, &taken));
        close(fd);
        STEP(gm_vulkan_map(made, NULL, &host));
        STEP(gm_vulkan_map(taken, NULL, &again));
        memset(host, mark, SIZE);
        STEP(gm_vulkan_invalidate(taken, 0, SIZE));
        if (((unsigned char *)again)[SIZE - 1] != mark)
            return (void *)(intptr_t)__LINE__;
        STEP(gm_vulkan_flush(taken, 1, 1));
        STEP(gm_vulkan_unmap(taken));
        gm_vulkan_close(vulkan);
        STEP(gm_vulkan_free(made));
        STEP(gm_vulkan_free(taken));
    }
    return NULL;
}

TEST(threads_open_allocate_and_free_concurrently) {
    pthread_t threads[THREADS];
    unsigned char marks[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        marks[i] = (unsigned char)(i + 1);
    start(threads, a_life, marks, 1);
    finish(threads);
}

/* Vulkan wants one thread at a time for a memory object, and the test driver sees it if not. */
static void *map_and_unmap(void *data) {
    struct gm_vulkan_memory *memory = data;
    for (int round = 0; round < ROUNDS; round++) {
        void *host;
        gpumem_status status = gm_vulkan_map(memory, NULL, &host);
        if (status == GPUMEM_OK)
            STEP(gm_vulkan_unmap(memory));
        else if (status != GPUMEM_ERROR_BUSY)
            return (void *)(intptr_t)__LINE__;
    }
    return NULL;
}

TEST(threads_map_and_unmap_one_memory) {
    pthread_t threads[THREADS];
    struct gm_vulkan *vulkan;
    struct gm_vulkan_memory *memory;
    OK(gm_vulkan_open(softgpu_uuid, &vulkan, NULL, 0));
    OK(gm_vulkan_allocate(vulkan, SIZE, 0, &memory));
    start(threads, map_and_unmap, memory, 0);
    finish(threads);
    OK(gm_vulkan_free(memory));
    gm_vulkan_close(vulkan);
}

/* The count never passes the limit, and never loses anything. */
static void *allocate_under_a_limit(void *data) {
    struct gm_vulkan *vulkan = data;
    for (int round = 0; round < ROUNDS; round++) {
        struct gm_vulkan_memory *memory;
        gpumem_status status = gm_vulkan_allocate(vulkan, 4096, 0, &memory);
        if (status == GPUMEM_OK)
            STEP(gm_vulkan_free(memory));
        else if (status != GPUMEM_ERROR_OUT_OF_CAPACITY)
            return (void *)(intptr_t)__LINE__;
    }
    return NULL;
}

TEST(threads_share_the_allocation_limit) {
    pthread_t threads[THREADS];
    struct gm_vulkan *vulkan;
    setenv("VULKAN_ICD_ALLOCATIONS", "4", 1);
    OK(gm_vulkan_open(softgpu_uuid, &vulkan, NULL, 0));
    start(threads, allocate_under_a_limit, vulkan, 0);
    finish(threads);
    assert_int_equal(gm_vulkan_memory_count(vulkan), 0);
    gm_vulkan_close(vulkan);
}
