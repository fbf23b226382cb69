/* cuMemBatchDecompressAsync: refused where the device has no engine for it, done where it has. */
#include "harness.h"
#include "temporary.h"

/* 64 times "softgpu ": as a raw DEFLATE stream, and as an LZ4 block. */
#define TEXT_SIZE 512
static const unsigned char deflated[] = {0x2b, 0xce, 0x4f, 0x2b, 0x49, 0x2f, 0x28, 0x55,
                                         0x28, 0x1e, 0xa5, 0x47, 0x24, 0x0d, 0x00};
static const unsigned char lz4[] = {0x8f, 's',  'o',  'f',  't', 'g', 'p', 'u', ' ', 0x08,
                                    0x00, 0xff, 0xe1, 0x50, 't', 'g', 'p', 'u', ' '};

TEST(decompression_without_an_engine_is_refused) {
    if (device_attribute(CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK) != 0)
        SKIP("the device decompresses");
    CUmemDecompressParams params = {.algo = CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE};
    size_t failed = 7;
    FAILS_CU(NOT_SUPPORTED, cu.cuMemBatchDecompressAsync(&params, 1, 0, &failed, NULL));
    FAILS_CU(NOT_SUPPORTED, cu.cuMemBatchDecompressAsync(NULL, 0, 5, NULL, NULL));
    assert_int_equal(failed, 7);
}

/* ---- On a device that has one ---------------------------------------------------------------- */

struct buffers {
    CUdeviceptr from, to, counts;
    CUmemDecompressParams params[2];
};

static void *pointer(CUdeviceptr p) {
    return (void *)(uintptr_t)p;
}

static void prepare(struct buffers *b) {
    memset(b, 0, sizeof *b);
    OK_CU(cu.cuMemAlloc_v2(&b->from, 4096));
    OK_CU(cu.cuMemAlloc_v2(&b->to, 4096));
    OK_CU(cu.cuMemAlloc_v2(&b->counts, 16));
    OK_CU(cu.cuMemcpyHtoD_v2(b->from, deflated, sizeof deflated));
    OK_CU(cu.cuMemcpyHtoD_v2(b->from + 100, lz4, sizeof lz4));
    OK_CU(cu.cuMemsetD8_v2(b->to, 1, 4096));
    OK_CU(cu.cuMemsetD8_v2(b->counts, 0xff, 16));
    b->params[0] = (CUmemDecompressParams){.srcNumBytes = sizeof deflated,
                                           .dstNumBytes = TEXT_SIZE,
                                           .dstActBytes = pointer(b->counts),
                                           .src = pointer(b->from),
                                           .dst = pointer(b->to),
                                           .algo = CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE};
    b->params[1] = (CUmemDecompressParams){.srcNumBytes = sizeof lz4,
                                           .dstNumBytes = 1000,
                                           .dstActBytes = pointer(b->counts + 4),
                                           .src = pointer(b->from + 100),
                                           .dst = pointer(b->to + 2000),
                                           .algo = CU_MEM_DECOMPRESS_ALGORITHM_LZ4};
}

static bool is_text(const char *bytes) {
    for (int i = 0; i < TEXT_SIZE; i += 8)
        if (memcmp(bytes + i, "softgpu ", 8) != 0)
            return false;
    return bytes[TEXT_SIZE] == 1;
}

CHILD(decompresses) {
    struct buffers b;
    char out[4096];
    cuuint32_t counts[2];
    struct gate gate;
    init_driver();
    prepare(&b);
    CUstream s = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    OK_CU(cu.cuCtxSynchronize());
    gate_make(&gate);
    gate_hold(&gate, s);
    OK_CU(cu.cuMemBatchDecompressAsync(b.params, 2, 0, NULL, s));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(s));
    gate_drain(&gate, s);
    OK_CU(cu.cuMemcpyDtoH_v2(out, b.to, sizeof out));
    OK_CU(cu.cuMemcpyDtoH_v2(counts, b.counts, sizeof counts));
    bool good = is_text(out) && is_text(out + 2000);
    return good && counts[0] == TEXT_SIZE && counts[1] == TEXT_SIZE ? 0 : 1;
}

CHILD(refuses) {
    struct buffers b;
    size_t failed;
    init_driver();
    prepare(&b);
    CUdeviceptr managed = MADE_CU(CUdeviceptr, cuMemAllocManaged, 4096, CU_MEM_ATTACH_GLOBAL);
#define REFUSED(index, change)                                                                     \
    do {                                                                                           \
        CUmemDecompressParams kept = b.params[1];                                                  \
        failed = 7;                                                                                \
        change;                                                                                    \
        FAILS_CU(INVALID_VALUE, cu.cuMemBatchDecompressAsync(b.params, 2, 0, &failed, NULL));      \
        if (failed != (index))                                                                     \
            return 1;                                                                              \
        b.params[1] = kept;                                                                        \
    } while (0)
    REFUSED(1, b.params[1].algo = CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY);
    REFUSED(1, b.params[1].algo = (CUmemDecompressAlgorithm)5);
    REFUSED(1, b.params[1].padding[3] = 1);
    REFUSED(1, b.params[1].src = NULL);
    REFUSED(1, b.params[1].dst = pointer(managed));
    REFUSED(1, b.params[1].dstActBytes = NULL);
    REFUSED(1, b.params[1].srcNumBytes = 0);
    REFUSED(1, b.params[1].srcNumBytes = 5000);
    REFUSED(1, b.params[1].dstNumBytes = 5000);
    REFUSED(1, b.params[1].dst = pointer(0x1000));
    FAILS_CU(INVALID_VALUE, cu.cuMemBatchDecompressAsync(b.params, 2, 1, &failed, NULL));
    FAILS_CU(INVALID_VALUE, cu.cuMemBatchDecompressAsync(NULL, 2, 0, NULL, NULL));
    FAILS_CU(INVALID_VALUE, cu.cuMemBatchDecompressAsync(b.params, 0, 0, NULL, NULL));
    return failed == SIZE_MAX ? 0 : 2;
}

/* Bytes that are no stream fault the context, as a failure of another engine does. */
CHILD(faults) {
    struct buffers b;
    init_driver();
    prepare(&b);
    b.params[0].src = pointer(b.from + 1);
    OK_CU(cu.cuMemBatchDecompressAsync(b.params, 1, 0, NULL, NULL));
    return cu.cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED ? 0 : 1;
}

/* Memory of a pool is for the engine when the pool was made for it. */
CHILD(pools) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    struct buffers b;
    char out[4096];
    init_driver();
    prepare(&b);
    for (unsigned short usage = 0; usage <= CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS;
         usage = (unsigned short)(usage + CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS)) {
        unsigned capable = 7;
        props.usage = usage;
        CUmemoryPool pool = MADE_CU(CUmemoryPool, cuMemPoolCreate, &props);
        CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAllocFromPoolAsync, sizeof out, pool, NULL);
        OK_CU(cu.cuMemsetD8Async(p, 1, sizeof out, NULL));
        OK_CU(cu.cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, p));
        b.params[0].dst = pointer(p);
        check_result(cu.cuMemBatchDecompressAsync(b.params, 1, 0, NULL, NULL),
                     usage ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, "decompress to a pool",
                     __FILE__, __LINE__);
        OK_CU(cu.cuMemcpyDtoHAsync_v2(out, p, sizeof out, NULL));
        OK_CU(cu.cuCtxSynchronize());
        if (capable != (usage != 0) || is_text(out) != (usage != 0))
            return 1;
        DESTROY_CU(p, pool);
    }
    return 0;
}

CHILD(mask_is_what_is_done) {
    init_driver();
    return device_attribute(CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK) == 5 ? 0 : 1;
}

/* The child's status on a device like an H200 with an engine of all three algorithms. */
static int with_engine(const char *child) {
    static const char profile[] = "[device]\nlike = h200\nname = softgpu with an engine\n"
                                  "memory = 64M\n[attributes]\n"
                                  "MEM_DECOMPRESS_ALGORITHM_MASK = 7\n"
                                  "MEM_DECOMPRESS_MAXIMUM_LENGTH = 4194304\n";
    char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "softgpu-engine");
    assert_true(fd >= 0);
    assert_int_equal(write(fd, profile, sizeof profile - 1), sizeof profile - 1);
    close(fd);
    char *old = getenv("SOFTGPU_PROFILE") ? strdup(getenv("SOFTGPU_PROFILE")) : NULL;
    setenv("SOFTGPU_PROFILE", path, 1);
    int status = run_child(child, NULL);
    if (old)
        setenv("SOFTGPU_PROFILE", old, 1);
    else
        unsetenv("SOFTGPU_PROFILE");
    free(old);
    unlink(path);
    return status;
}

#define NEEDS_PROFILES() NEEDS_SOFTGPU("an H200 has no engine; a profile can have one")

TEST_WHERE(a_device_with_an_engine_decompresses, NEEDS_PROFILES()) {
    assert_int_equal(with_engine("mask_is_what_is_done"), 0);
    assert_int_equal(with_engine("decompresses"), 0);
    assert_int_equal(with_engine("pools"), 0);
}

TEST_WHERE(invalid_decompressions_are_refused, NEEDS_PROFILES()) {
    assert_int_equal(with_engine("refuses"), 0);
    assert_int_equal(with_engine("faults"), 0);
}
