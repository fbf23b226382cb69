/*
 * What conformance tests share. They use the driver's functions only, so the same programs run on
 * softgpu and on hardware.
 *
 *     TEST(allocates) {
 *         CUdeviceptr p;
 *         OK_CU(cu.cuMemAlloc_v2(&p, 100));
 *         FAILS_CU(INVALID_VALUE, cu.cuMemAlloc_v2(&p, 0));
 *         OK_CU(cu.cuMemFree_v2(p));
 *     }
 *
 * Each test begins with the primary context of device 0 current, all work done, and must leave
 * softgpu's state as it found it: objects, bytes in use, access rights.
 *
 * Environment: GPUMEM_DRIVER chooses the driver (else hardware, else softgpu). GPUMEM_TEST=name
 * runs one test. GPUMEM_TWIN=ptds puts the per-thread default stream twin in place of each function
 * that has one, so that the same tests prove the twins.
 */
#ifndef CONFORMANCE_HARNESS_H
#define CONFORMANCE_HARNESS_H

#include "test.h"

#include "driver_info.h"
#include "driver_objects.h"
#include "gate.h"
#include "members.h"
#include <gpumem/driver.h>
#include <gpumem/softgpu.h>

extern gpumem_driver_api cu;        /* the functions to call; with twins in place if asked for */
extern gpumem_driver *driver;       /* for gpumem_driver_has and symbols */
extern const softgpu_control *soft; /* NULL on hardware */
extern bool twins;                  /* a NULL stream is the per-thread default stream */
extern CUdevice dev;                /* device 0 */
extern CUcontext ctx;               /* its primary context */
extern int device_count;

/* ---- Checks --------------------------------------------------------------------------------- */

#define OK_CU(call)           check_result((call), CUDA_SUCCESS, #call, __FILE__, __LINE__)
#define FAILS_CU(error, call) check_result((call), CUDA_ERROR_##error, #call, __FILE__, __LINE__)
/* Where the result is a variable. */
#define ANSWERS_CU(result, call) check_result((call), (result), #call, __FILE__, __LINE__)
void check_result(CUresult got, CUresult wanted, const char *call, const char *file, int line);

/* What a function gives, through its first parameter and through its last. It must give
 * something. */
#define MADE_CU(type, function, ...)                                                               \
    GIVEN_BY(type, #function, OK_CU(cu.function(&given_, __VA_ARGS__)))
#define GOT_CU(type, function, ...)                                                                \
    GIVEN_BY(type, #function, OK_CU(cu.function(__VA_ARGS__, &given_)))

/* Whether a launch was refused because softgpu is told to run no kernels (SOFTGPU_KERNELS=0). */
bool no_kernels(CUresult launched);

/* Ends the test as skipped, with the reason that the runner demands. */
#define SKIP(...)                                                                                  \
    do {                                                                                           \
        skip_reason(__VA_ARGS__);                                                                  \
        skip();                                                                                    \
    } while (0)
void skip_reason(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Skips the test unless the device says 1 (or more) for the attribute. */
#define NEEDS_ATTRIBUTE(name)                                                                      \
    do {                                                                                           \
        if (device_attribute(name) < 1)                                                            \
            SKIP("the device has no %s", #name);                                                   \
    } while (0)
#define NEEDS_SOFTGPU(why)                                                                         \
    do {                                                                                           \
        if (!soft)                                                                                 \
            SKIP("needs softgpu: %s", why);                                                        \
    } while (0)
#define NEEDS_DEVICES(n)                                                                           \
    do {                                                                                           \
        if (device_count < (n))                                                                    \
            SKIP("needs %d devices, there are %d", (n), device_count);                             \
    } while (0)
#define NEEDS_LEGACY_STREAM()                                                                      \
    do {                                                                                           \
        if (twins)                                                                                 \
            SKIP("about the legacy default stream");                                               \
    } while (0)
int device_attribute(CUdevice_attribute attribute);
/* What a virtualised or divided device may lack. */
#define NEEDS_DESCRIPTORS()                                                                        \
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED)
#define NEEDS_POOL_DESCRIPTORS()                                                                   \
    do {                                                                                           \
        if (!pools_have_descriptors())                                                             \
            SKIP("the driver makes no pools that descriptors are exported of");                    \
    } while (0)
#define NEEDS_PEERS()                                                                              \
    do {                                                                                           \
        int reaches_ = 0;                                                                          \
        NEEDS_DEVICES(2);                                                                          \
        OK_CU(cu.cuDeviceCanAccessPeer(&reaches_, 0, 1));                                          \
        if (!reaches_)                                                                             \
            SKIP("the devices do not reach each other");                                           \
    } while (0)
#define NEEDS_UUID()                                                                               \
    do {                                                                                           \
        CUuuid uuid_;                                                                              \
        if (cu.cuDeviceGetUuid_v2(&uuid_, 0) == CUDA_ERROR_NOT_SUPPORTED)                          \
            SKIP("the devices have no UUID");                                                      \
    } while (0)
/* Attributes promise them where they are refused, so one is tried. */
bool pools_have_descriptors(void);

/* ---- Processes ------------------------------------------------------------------------------ */

/* Around each test. */
int test_begin(void **state);
int test_end(void **state);

/* A part that wants a process of its own (exit, fork, faults, sharing) is a CHILD. The driver is
 * open; cuInit is the child's to call. */

/* Runs a child and waits: its exit status, or 128 + the signal that ended it. Arguments are strings
 * and end with NULL. Descriptors without FD_CLOEXEC are inherited. */
int run_child(const char *name, ...) __attribute__((sentinel));
/* The same without waiting: the process id, to be given to wait_child. */
int start_child(const char *name, ...) __attribute__((sentinel));
int wait_child(int pid);

/* A test whose body is a child's, and that passes when the child returns 0. */
#define CHILD_TEST(function) CHILD_TEST_WHERE(function, (void)0)
/* `needs` are statements that skip it: NEEDS_SOFTGPU("..."). */
#define CHILD_TEST_WHERE(function, needs)                                                          \
    static void function##_apart(void **state);                                                    \
    TEST_ADD(function##_apart, #function, .own_fixtures = false);                                  \
    static void function##_apart(__attribute__((unused)) void **state) {                           \
        needs;                                                                                     \
        assert_int_equal(run_child(#function, NULL), 0);                                           \
    }                                                                                              \
    CHILD(function)

/* For a child: cuInit, device 0, its primary context current. */
void init_driver(void);
/* A child that begins with it, and whose exit status is 0 where it comes to its end. */
#define DRIVER_CHILD(function)                                                                     \
    static void function##_with_driver(int argc, char **argv);                                     \
    CHILD(function) {                                                                              \
        init_driver();                                                                             \
        function##_with_driver(argc, argv);                                                        \
        return 0;                                                                                  \
    }                                                                                              \
    static void function##_with_driver(__attribute__((unused)) int argc,                           \
                                       __attribute__((unused)) char **argv)

/* ---- Calls that answer by their value -------------------------------------------------------- */

static inline CUfunction function_of(CUmodule module, const char *name) {
    return MADE_CU(CUfunction, cuModuleGetFunction, module, name);
}

/* For blocks and threads in one dimension. */
static inline CUDA_KERNEL_NODE_PARAMS kernel_node(CUfunction function, unsigned blocks,
                                                  unsigned threads, void **params) {
    return (CUDA_KERNEL_NODE_PARAMS){GRID(blocks), .func = function, BLOCK(threads),
                                     .kernelParams = params};
}

/* Of pinned memory. */
static inline CUdeviceptr device_address(void *pinned) {
    return MADE_CU(CUdeviceptr, cuMemHostGetDevicePointer_v2, pinned, 0);
}

static inline CUmemLocation device_location(int device) {
    return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

/* A pattern that differs at each offset modulo 251 and with the seed, and the test for it. */
void fill_pattern(void *bytes, size_t size, unsigned seed);
bool has_pattern(const void *bytes, size_t size, unsigned seed);

/* What the device's memory has there. */
unsigned char byte_at(CUdeviceptr address);
uint32_t word_at(CUdeviceptr address);

/* ---- Calls that belong together -------------------------------------------------------------- */

/* Sets memory, and waits for it. */
void set_bytes(CUdeviceptr to, unsigned char value, size_t count);
void set_words(CUdeviceptr to, unsigned value, size_t count);
/* Launches it, and waits for it. */
void launch_and_wait(CUgraphExec exec, CUstream stream);
/* What comes in the second follows what is in the first. */
void order_streams(CUstream first, CUevent event, CUstream second);
/* Of memory of one piece that is mapped at these addresses. */
void unmap_and_free(CUdeviceptr at, size_t size, CUmemGenericAllocationHandle memory);

/* Ends up to four objects, in this order: memory by its address, and what has a handle. */
#define DESTROY_CU(...) DESTROY_CU_COUNTED(__VA_ARGS__, 4, 3, 2, 1, 0)(__VA_ARGS__)
/* Which of the following it is. */
#define DESTROY_CU_COUNTED(a, b, c, d, count, ...) DESTROY_CU_##count
#define DESTROY_CU_1(object)                                                                       \
    check_result(_Generic((object), CUdeviceptr                                                    \
                          : cu.cuMemFree_v2, CUstream                                              \
                          : cu.cuStreamDestroy_v2, CUevent                                         \
                          : cu.cuEventDestroy_v2, CUmodule                                         \
                          : cu.cuModuleUnload, CUcontext                                           \
                          : cu.cuCtxDestroy_v2, CUarray                                            \
                          : cu.cuArrayDestroy, CUmipmappedArray                                    \
                          : cu.cuMipmappedArrayDestroy, CUgraph                                    \
                          : cu.cuGraphDestroy, CUgraphExec                                         \
                          : cu.cuGraphExecDestroy, CUmemoryPool                                    \
                          : cu.cuMemPoolDestroy, CUlibrary                                         \
                          : cu.cuLibraryUnload, CUlinkState                                        \
                          : cu.cuLinkDestroy, CUexternalMemory                                     \
                          : cu.cuDestroyExternalMemory, CUexternalSemaphore                        \
                          : cu.cuDestroyExternalSemaphore, CUgreenCtx                              \
                          : cu.cuGreenCtxDestroy)(object),                                         \
                 CUDA_SUCCESS, "the end of " #object, __FILE__, __LINE__)
#define DESTROY_CU_2(a, ...) (DESTROY_CU_1(a), DESTROY_CU_1(__VA_ARGS__))
#define DESTROY_CU_3(a, ...) (DESTROY_CU_1(a), DESTROY_CU_2(__VA_ARGS__))
#define DESTROY_CU_4(a, ...) (DESTROY_CU_1(a), DESTROY_CU_3(__VA_ARGS__))

#endif
