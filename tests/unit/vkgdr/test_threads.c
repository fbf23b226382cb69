/* Sixteen threads allocate, write and free on one handle; some of them open their own. */
#include "vkgdr_test.h"

#include <pthread.h>

ALL_TESTS(start_vkgdr, close_device);

EACH_TEST(start_with_context, end_with_context);

#define THREADS 16
#define ROUNDS  60
#define HELD    8

static vkgdr_t shared;

struct held {
    vkgdr_memory_t memory;
    size_t size;
    unsigned seed;
};

static bool is_pattern(const unsigned char *bytes, size_t size, unsigned seed) {
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != (unsigned char)((i * 167 + i / 251 + seed) & 0xff))
            return false;
    return true;
}

static const char *end_held(struct held *held) {
    if (!held->memory)
        return NULL;
    bool same = is_pattern(host_of(held->memory), held->size, held->seed);
    vkgdr_memory_free(held->memory);
    held->memory = NULL;
    return same ? NULL : "another thread wrote to the buffer";
}

static const char *step(vkgdr_t g, struct held *held, unsigned *seed) {
    const char *failed = end_held(held);
    if (failed)
        return failed;
    bool large = (unsigned)rand_r(seed) % 20 == 0;
    held->size = large ? 300 * KIB : 1 + (unsigned)rand_r(seed) % 5000;
    held->seed = (unsigned)rand_r(seed);
    held->memory = vkgdr_memory_alloc(g, held->size, 0);
    if (!held->memory)
        return "an allocation fails";
    fill(host_of(held->memory), held->size, held->seed);
    unsigned char last;
    if (cu->cuMemcpyDtoH_v2(&last, vkgdr_memory_get_device_ptr(held->memory) + held->size - 1, 1) !=
        CUDA_SUCCESS)
        return "a copy fails";
    return last == host_of(held->memory)[held->size - 1] ? NULL : "the device sees other bytes";
}

static void *work(void *data) {
    unsigned seed = (unsigned)(uintptr_t)data;
    struct held held[HELD] = {{NULL, 0, 0}};
    const char *failed = NULL;
    if (cu->cuCtxSetCurrent(own_context()) != CUDA_SUCCESS)
        return "no context";
    vkgdr_t own = seed % 4 == 0 ? vkgdr_open(0, VKGDR_OPEN_CURRENT_CONTEXT_BIT) : NULL;
    for (int i = 0; i < ROUNDS && !failed; i++)
        failed = step(own ? own : shared, &held[(unsigned)rand_r(&seed) % HELD], &seed);
    for (int i = 0; i < HELD; i++) {
        const char *wrong = end_held(&held[i]);
        failed = failed ? failed : wrong;
    }
    vkgdr_close(own);
    return (void *)(uintptr_t)failed;
}

TEST(sixteen_threads_share_a_handle) {
    pthread_t threads[THREADS];
    shared = open_gpu(0);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
    const char *failed = NULL;
    for (int i = 0; i < THREADS; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        failed = result ? result : failed;
    }
    vkgdr_close(shared);
    if (failed)
        fail_msg("%s", failed);
}
