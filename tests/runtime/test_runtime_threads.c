/* Threads that launch, allocate and change devices, while others load and unload kernels. */
#include "runtime_test.h"

#include "images.h"

#include <pthread.h>
#include <stdio.h>

enum { THREADS = 64, LOADERS = 8, ROUNDS = 6 };

static const struct {
    unsigned magic, version;
    const void *image, *parts;
} wrapper = {0x466243b1, 1, image_ptx_fatbin, NULL};
/* Host addresses: one that is always registered, and some for each loader. */
static char common, own[LOADERS][40];

BEFORE_TESTS {
    setenv("SOFTGPU_DEVICES", "2", 1);
    open_softgpu();
    return 0;
}

/* The kernel writes 42 and the number. */
static void launches(const char *stub, int number) {
    int result = 0;
    void *memory = NULL;
    OK_RT(cudaMalloc(&memory, sizeof result));
    void *arguments[] = {&memory, &number};
    OK_RT(cudaLaunchKernel(stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 0, NULL));
    OK_RT(cudaMemcpy(&result, memory, sizeof result, cudaMemcpyDeviceToHost));
    assert_int_equal(result, 42 + number);
    OK_RT(cudaFree(memory));
}

static void *launcher(void *number) {
    for (int i = 0; i < ROUNDS; i++) {
        int device = (i + (int)(intptr_t)number) % 2, found = -1;
        cudaEvent_t event;
        OK_RT(cudaSetDevice(device));
        FAILS_RT(InvalidDevice, cudaSetDevice(2));
        launches(&common, i);
        OK_RT(cudaEventCreate(&event));
        OK_RT(cudaEventRecord(event, NULL));
        OK_RT(cudaEventSynchronize(event));
        OK_RT(cudaEventDestroy(event));
        OK_RT(cudaGetDevice(&found));
        assert_int_equal(found, device);
        FAILS_RT(InvalidDevice, cudaGetLastError());
    }
    return NULL;
}

static void **loaded(const char *stubs, size_t count) {
    void **binary = __cudaRegisterFatBinary((void *)(uintptr_t)&wrapper);
    for (size_t i = 0; i < count; i++)
        __cudaRegisterFunction(binary, stubs + i, NULL, "small", -1, NULL, NULL, NULL, NULL, NULL);
    return binary;
}

/* As dlopen and dlclose of a library with kernels. */
static void *loader(void *number) {
    const char *stubs = own[(intptr_t)number];
    for (int i = 0; i < ROUNDS; i++) {
        void **binary = loaded(stubs, sizeof own[0]);
        launches(stubs + i, i);
        __cudaUnregisterFatBinary(binary);
        FAILS_RT(InvalidResourceHandle,
                 cudaLaunchKernel(stubs, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL));
        cudaGetLastError();
    }
    return NULL;
}

TEST(threads_launch_and_change_devices_while_others_load_and_unload_kernels) {
    pthread_t threads[THREADS];
    void **binary = loaded(&common, 1);
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < LOADERS ? loader : launcher, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    __cudaUnregisterFatBinary(binary);
}

/* The process's memory in use, in bytes: mallinfo2 would not see a sanitizer's. */
static size_t pages(void) {
    size_t size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu %zu", &size, &resident), 2);
    fclose(file);
    return resident;
}

TEST(loading_and_unloading_for_long_does_not_grow) {
    static char many[512];
    for (int i = 0; i < 200; i++)
        __cudaUnregisterFatBinary(loaded(many, sizeof many));
    size_t before = pages();
    for (int i = 0; i < 2000; i++)
        __cudaUnregisterFatBinary(loaded(many, sizeof many));
    assert_true(pages() < before + 256);
}
