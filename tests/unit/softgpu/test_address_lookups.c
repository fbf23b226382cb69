/*
 * How often a call searches the address map: once for each address that it is given. Linked so that
 * every search of a tree passes by here (tests/CMakeLists.txt).
 */
#include "softgpu/address/tree.h"

#include <gpumem/cuda_api.h>

#include "members.h"
#include "test.h"

#define CU_FN(symbol, name, version, kind, params, args) CUresult CUDAAPI symbol params;
#include <gpumem/functions.def>

#define SIZE ((size_t)4096)

static unsigned look_ups;

struct sg_tree_node *__real_sg_tree_at_most(const struct sg_tree *tree, uint64_t key);
struct sg_tree_node *__wrap_sg_tree_at_most(const struct sg_tree *tree, uint64_t key);

struct sg_tree_node *__wrap_sg_tree_at_most(const struct sg_tree *tree, uint64_t key) {
    look_ups++;
    return __real_sg_tree_at_most(tree, key);
}

#define OK_CU(call) assert_int_equal((call), CUDA_SUCCESS)
/* `call` succeeds, and searches so often. */
#define LOOKS_UP(times, call)                                                                      \
    do {                                                                                           \
        look_ups = 0;                                                                              \
        OK_CU(call);                                                                               \
        assert_int_equal(look_ups, times);                                                         \
    } while (0)

static CUstream stream;
static CUdeviceptr a, b;
static unsigned char plain[SIZE], other[SIZE];

static int begin(void **state) {
    CUcontext context;
    OK_CU(cuInit(0));
    OK_CU(cuDevicePrimaryCtxRetain(&context, 0));
    OK_CU(cuCtxSetCurrent(context));
    OK_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK_CU(cuMemAlloc_v2(&a, SIZE));
    OK_CU(cuMemAlloc_v2(&b, SIZE));
    return 0;
}

static int end(void **state) {
    OK_CU(cuMemFree_v2(a));
    OK_CU(cuMemFree_v2(b));
    OK_CU(cuStreamDestroy_v2(stream));
    OK_CU(cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}

ALL_TESTS(begin, end);

TEST(a_copy_looks_up_each_address_once) {
    LOOKS_UP(2, cuMemcpyHtoD_v2(a, plain, SIZE));
    LOOKS_UP(2, cuMemcpyDtoH_v2(other, a, SIZE));
    LOOKS_UP(2, cuMemcpyDtoD_v2(b, a, SIZE));
    LOOKS_UP(2, cuMemcpy(b, a, SIZE));
    LOOKS_UP(2, cuMemcpyHtoDAsync_v2(a, plain, SIZE, stream));
    LOOKS_UP(2, cuMemcpyDtoDAsync_v2(b, a, SIZE, stream));
    OK_CU(cuStreamSynchronize(stream));
    assert_memory_equal(plain, other, SIZE);
}

TEST(a_2d_copy_looks_up_each_address_once) {
    const CUDA_MEMCPY2D copy = {FROM_HOST(plain), .srcPitch = 64, TO_DEVICE(a), .dstPitch = 128,
                                EXTENT(32, 16)};
    LOOKS_UP(2, cuMemcpy2D_v2(&copy));
}

TEST(a_batch_copy_looks_up_each_address_once) {
    CUdeviceptr to[2] = {a, b}, from[2] = {(uintptr_t)plain, (uintptr_t)plain};
    size_t sizes[2] = {SIZE, SIZE}, first = 0, failed;
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL};
    LOOKS_UP(4, cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &first, 1, &failed, stream));
    OK_CU(cuStreamSynchronize(stream));
}

TEST(a_memset_looks_up_its_address_once) {
    LOOKS_UP(1, cuMemsetD8_v2(a, 1, SIZE));
    LOOKS_UP(1, cuMemsetD32Async(a, 2, SIZE / 4, stream));
    LOOKS_UP(1, cuMemsetD2D8_v2(a, 64, 3, 32, 16));
}

TEST(a_stream_memory_operation_looks_up_its_address_once) {
    LOOKS_UP(1, cuStreamWriteValue32_v2(stream, a, 7, CU_STREAM_WRITE_VALUE_DEFAULT));
    LOOKS_UP(1, cuStreamWaitValue32_v2(stream, a, 7, CU_STREAM_WAIT_VALUE_EQ));
    OK_CU(cuStreamSynchronize(stream));
}

TEST(a_pointer_query_looks_up_its_address_once) {
    CUpointer_attribute attributes[3] = {CU_POINTER_ATTRIBUTE_CONTEXT,
                                         CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                         CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    CUcontext context;
    unsigned type;
    size_t size;
    void *data[3] = {&context, &type, &size};
    LOOKS_UP(1, cuPointerGetAttributes(3, attributes, data, a));
    assert_int_equal(size, SIZE);
    LOOKS_UP(1, cuMemGetAddressRange_v2(NULL, &size, a + 1));
}

/* Another thread may have freed plain memory while cuMemFree waited for the context's work: it
 * looks again. To allocate is to look for what lies before the new range. */
TEST(freeing_looks_up_its_address_again_after_waiting) {
    CUdeviceptr p;
    OK_CU(cuMemAlloc_v2(&p, SIZE));
    LOOKS_UP(2, cuMemFree_v2(p));
    OK_CU(cuMemAllocAsync(&p, SIZE, stream));
    LOOKS_UP(1, cuMemFreeAsync(p, stream));
    LOOKS_UP(1, cuMemAllocAsync(&p, SIZE, stream));
    LOOKS_UP(1, cuMemFree_v2(p));
}
