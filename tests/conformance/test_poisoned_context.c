/* A fault of queued work poisons its context. Each fault has a process of its own. */
#include "harness.h"
#include "images.h"

#include <sched.h>
#include <stdatomic.h>

#define PAGE ((size_t)2 << 20)

/* Memory that can be taken away under queued work. */
struct mapping {
    CUdeviceptr address;
    CUmemGenericAllocationHandle handle;
};

static void map(struct mapping *mapping) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = device_location(dev)};
    CUmemAccessDesc access = {.location = prop.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK_CU(cu.cuMemAddressReserve(&mapping->address, PAGE, 0, 0, 0));
    OK_CU(cu.cuMemCreate(&mapping->handle, PAGE, &prop, 0));
    OK_CU(cu.cuMemMap(mapping->address, PAGE, 0, mapping->handle, 0));
    OK_CU(cu.cuMemSetAccess(mapping->address, PAGE, &access, 1));
}

static atomic_int host_calls;

static void CUDAAPI count_call(void *unused) {
    atomic_fetch_add(&host_calls, 1);
}

/* What a check in a child says reaches the parent as its exit status. */
#define EXPECT(error, call)                                                                        \
    do {                                                                                           \
        CUresult got = (call);                                                                     \
        if (got != (error)) {                                                                      \
            print_error("%s answered %d, not %d\n", #call, (int)got, (int)(error));                \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

/* Queues a set behind a gate and takes its memory away. */
static void prepare_fault(struct gate *gate, CUstream *stream, struct mapping *mapping) {
    init_driver();
    gate_make(gate);
    map(mapping);
    OK_CU(cu.cuStreamCreate(stream, CU_STREAM_NON_BLOCKING));
    gate_hold(gate, *stream);
    OK_CU(cu.cuMemsetD8Async(mapping->address, 1, PAGE, *stream));
}

CHILD_TEST(a_memset_of_unmapped_memory_poisons_the_context) {
    struct gate gate;
    struct mapping mapping;
    CUstream stream, other;
    unsigned char out;
    prepare_fault(&gate, &stream, &mapping);
    CUevent event = MADE_CU(CUevent, cuEventCreate, CU_EVENT_DISABLE_TIMING);
    OK_CU(cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    CUdeviceptr bytes = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 64);
    OK_CU(cu.cuLaunchHostFunc(stream, count_call, NULL));
    OK_CU(cu.cuEventRecord(event, stream));
    OK_CU(cu.cuMemUnmap(mapping.address, PAGE));
    gate_release(&gate);
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuEventSynchronize(event));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(stream));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamQuery(other));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuEventQuery(event));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemcpyDtoH_v2(&out, bytes, 1));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemsetD8Async(bytes, 1, 1, other));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuEventRecord(event, other));
    return atomic_load(&host_calls) == 0 ? 0 : 2;
}

CHILD_TEST(a_memset_after_access_is_revoked_poisons_the_context) {
    struct gate gate;
    struct mapping mapping;
    CUstream stream;
    prepare_fault(&gate, &stream, &mapping);
    CUmemAccessDesc access = {.location = device_location(dev),
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READ};
    OK_CU(cu.cuMemSetAccess(mapping.address, PAGE, &access, 1));
    gate_release(&gate);
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(stream));
    return 0;
}

CHILD_TEST(a_copy_to_the_host_from_unmapped_memory_is_a_launch_failure) {
    struct gate gate;
    struct mapping mapping;
    init_driver();
    gate_make(&gate);
    map(&mapping);
    void *host = MADE_CU(void *, cuMemHostAlloc, 4096, 0);
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    gate_hold(&gate, stream);
    OK_CU(cu.cuMemcpyDtoHAsync_v2(host, mapping.address, 4096, stream));
    OK_CU(cu.cuMemUnmap(mapping.address, PAGE));
    gate_release(&gate);
    EXPECT(CUDA_ERROR_LAUNCH_FAILED, cu.cuStreamSynchronize(stream));
    return 0;
}

/* A place for the answer comes before the fault, and the fault before what is asked for. */
CHILD_TEST(kernel_parameter_queries_return_the_fault_of_the_context) {
    struct gate gate;
    struct mapping mapping;
    CUstream stream;
    CUlibrary library;
    size_t offset = 99, size = 99;
    prepare_fault(&gate, &stream, &mapping);
    OK_CU(cu.cuLibraryLoadData(&library, image_kernels_cubin, NULL, NULL, 0, NULL, NULL, 0));
    CUkernel kernel = MADE_CU(CUkernel, cuLibraryGetKernel, library, "types");
    OK_CU(cu.cuMemUnmap(mapping.address, PAGE));
    gate_release(&gate);
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(stream));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuKernelGetParamInfo(kernel, 7, &offset, &size));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuKernelGetParamInfo(kernel, 99, &offset, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cu.cuKernelGetParamInfo(kernel, 7, NULL, &size));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cu.cuKernelGetParamInfo(NULL, 7, &offset, &size));
    return offset == 99 && size == 99 ? 0 : 2;
}

/* Work of other streams that waits for what will never be right must not hang anybody. */
CHILD_TEST(a_fault_releases_waiting_streams_of_the_context) {
    struct gate gate, never;
    struct mapping mapping;
    CUstream stream, held;
    prepare_fault(&gate, &stream, &mapping);
    gate_make(&never);
    OK_CU(cu.cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
    gate_hold(&never, held);
    OK_CU(cu.cuMemUnmap(mapping.address, PAGE));
    gate_release(&gate);
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(stream));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(held));
    EXPECT(CUDA_SUCCESS, cu.cuDevicePrimaryCtxReset_v2(dev));
    return 0;
}

static atomic_bool entered, released;

static void CUDAAPI stay(void *unused) {
    atomic_store(&entered, true);
    while (!atomic_load(&released))
        sched_yield();
}

/* Functions that wait for their turn behind one that stays: not called, and in nobody's way. */
CHILD_TEST_WHERE(
    queued_host_functions_are_not_called_after_a_fault,
    NEEDS_SOFTGPU("whether hardware still calls functions that wait for a turn is not known")) {
    struct gate gate;
    struct mapping mapping;
    CUstream stream, held, lined[3];
    prepare_fault(&gate, &stream, &mapping);
    OK_CU(cu.cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
    OK_CU(cu.cuLaunchHostFunc(held, stay, NULL));
    while (!atomic_load(&entered))
        sched_yield();
    for (unsigned i = 0; i < COUNT(lined); i++) {
        OK_CU(cu.cuStreamCreate(&lined[i], CU_STREAM_NON_BLOCKING));
        OK_CU(cu.cuLaunchHostFunc(lined[i], count_call, NULL));
        OK_CU(cu.cuLaunchHostFunc(lined[i], count_call, NULL));
    }
    OK_CU(cu.cuMemUnmap(mapping.address, PAGE));
    gate_release(&gate);
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(stream));
    for (unsigned i = COUNT(lined); i-- > 0;)
        EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(lined[i]));
    atomic_store(&released, true);
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(held));
    EXPECT(CUDA_SUCCESS, cu.cuDevicePrimaryCtxReset_v2(dev));
    return atomic_load(&host_calls) == 0 ? 0 : 2;
}
