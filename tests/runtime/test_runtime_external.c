/* Memory and semaphores of other APIs: arrays over memory, and 12's forms of before 11.2. */
#include "runtime_test.h"

#include <fcntl.h>
#include <sys/mman.h>

static const softgpu_control *soft;

BEFORE_TESTS {
    soft = open_softgpu();
    return 0;
}

enum { BYTES = 65536 };

TEST(a_mipmapped_array_lies_in_imported_memory) {
    const float value = 2.5F;
    cudaExternalMemory_t external;
    cudaMipmappedArray_t levels;
    cudaArray_t level;
    float got = 0;
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(fd, BYTES), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    cudaExternalMemoryHandleDesc desc = {
        .type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .handle.fd = fd, .size = BYTES};
    cudaExternalMemoryMipmappedArrayDesc wanted = {
        .formatDesc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat),
        .extent = {8, 8, 0},
        .numLevels = 2};
    OK_RT(cudaImportExternalMemory(&external, &desc));
    OK_RT(cudaExternalMemoryGetMappedMipmappedArray(&levels, external, &wanted));
    OK_RT(cudaGetMipmappedArrayLevel(&level, levels, 1));
    OK_RT(cudaMemcpy2DToArray(level, 4, 1, &value, 4, 4, 1, cudaMemcpyHostToDevice));
    OK_RT(cudaMemcpy2DFromArray(&got, 4, level, 4, 1, 4, 1, cudaMemcpyDeviceToHost));
    assert_true(got == value);
    FAILS_RT(InvalidValue, cudaExternalMemoryGetMappedMipmappedArray(NULL, external, &wanted));
    FAILS_RT(InvalidValue, cudaExternalMemoryGetMappedMipmappedArray(&levels, external, NULL));
    wanted.formatDesc.x = 5;
    FAILS_RT(InvalidChannelDescriptor,
             cudaExternalMemoryGetMappedMipmappedArray(&levels, external, &wanted));
    OK_RT(cudaFreeMipmappedArray(levels));
    OK_RT(cudaDestroyExternalMemory(external));
}

/* As programs built before 11.2 have it, for a signal. */
struct old_params {
    uint64_t fence, synchronization, key, flags;
};

TEST(the_forms_of_before_11_2_are_taken_under_the_plain_names_of_12) {
    typedef cudaError_t (*old_form)(const cudaExternalSemaphore_t *, const struct old_params *,
                                    unsigned, cudaStream_t);
    union {
        void *address;
        old_form call;
    } signal, wait;
    void *library =
        dlopen(GPUMEM_BINARY_DIR "/lib/gpumem/runtime/12/libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    signal.address = dlsym(library, "cudaSignalExternalSemaphoresAsync");
    wait.address = dlsym(library, "cudaWaitExternalSemaphoresAsync_ptsz");
    int fd = soft->semaphore_create(SOFTGPU_SEMAPHORE_TIMELINE, 3);
    softgpu_semaphore *shared = mmap(NULL, SOFTGPU_SEMAPHORE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
    assert_true((void *)shared != MAP_FAILED);
    cudaExternalSemaphoreHandleDesc desc = {
        .type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD, .handle.fd = fd};
    cudaExternalSemaphore_t one, both[2] = {0};
    OK_RT(cudaImportExternalSemaphore(&one, &desc));
    both[0] = one;
    /* Two, so that the size of the params matters. Those of a wait are longer than these. */
    struct old_params params[2] = {{.fence = 5}, {.fence = 7}}, waited_for[2] = {{.fence = 2}, {0}};
    OK_RT(wait.call(&one, waited_for, 1, NULL));
    FAILS_RT(InvalidValue, signal.call(both, params, 2, NULL));
    both[1] = one;
    OK_RT(signal.call(both, params, 2, NULL));
    OK_RT(cudaDeviceSynchronize());
    assert_int_equal(__atomic_load_n(&shared->value, __ATOMIC_ACQUIRE), 7);
    FAILS_RT(InvalidValue, signal.call(NULL, params, 1, NULL));
    FAILS_RT(InvalidValue, signal.call(both, NULL, 1, NULL));
    OK_RT(cudaDestroyExternalSemaphore(one));
    munmap(shared, SOFTGPU_SEMAPHORE_SIZE);
}
