/* What softgpu reports of the driver's calls names the runtime's function in which they were made,
 * and a fault may be meant for it. */
#include "runtime_test.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static const softgpu_control *soft;
static int trace;

BEFORE_TESTS {
    char path[64];
    trace = memfd_create("trace", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", trace);
    setenv("SOFTGPU_TRACE", path, 1);
    setenv("SOFTGPU_LEAKS", "1", 1);
    soft = open_softgpu();
    return 0;
}

/* What the trace has got since the last call. */
static const char *traced(void) {
    static char text[65536];
    static off_t from;
    ssize_t length = pread(trace, text, sizeof text - 1, from);
    assert_true(length >= 0 && length < (ssize_t)sizeof text - 1);
    text[length] = '\0';
    from += length;
    return text;
}

static void has(const char *text, const char *wanted) {
    if (!strstr(text, wanted))
        fail_msg("no '%s' in\n%s", wanted, text);
}

TEST(the_trace_names_the_function_behind_the_drivers_calls_and_has_a_line_of_its_own) {
    void *memory = NULL;
    OK_RT(cudaMalloc(&memory, 1000));
    traced();
    OK_RT(cudaMemset(memory, 3, 500));
    const char *text = traced();
    has(text, "CUDA_SUCCESS, of cudaMemset\n");
    has(text, ", 3, 500) cudaSuccess\n");
    FAILS_RT(InvalidMemcpyDirection, cudaMemcpy(memory, memory, 8, (cudaMemcpyKind)9));
    has(traced(), ", 8, 9) cudaErrorInvalidMemcpyDirection\n");
    FAILS_RT(InvalidMemcpyDirection, cudaGetLastError());
    has(traced(), "cudaGetLastError() cudaErrorInvalidMemcpyDirection\n");
    OK_RT(cudaFree(memory));
    cudaEvent_t event;
    OK_RT(cudaEventCreate(&event));
    OK_RT(cudaEventDestroy(event));
    assert_null(strstr(traced(), "cuGetProcAddress"));
}

TEST(leak_reports_name_the_function_and_leave_out_what_the_runtime_keeps) {
    void *memory = NULL;
    uint64_t mark = soft->leak_mark();
    OK_RT(cudaMallocManaged(&memory, 1000, 1));
    char *text = soft->leak_report_since(mark);
    has(text, "made by cudaMallocManaged (cuMemAllocManaged) from ");
    assert_null(strstr(text, "libcudart"));
    soft->free_text(text);
    OK_RT(cudaFree(memory));
}

static const char *error_log(void) {
    static char text[32768];
    size_t size = sizeof text;
    union {
        void *address;
        CUresult (*dump)(CUlogIterator *, char *, size_t *, unsigned);
    } logs = {dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuLogsDumpToMemory")};
    assert_int_equal(logs.dump(NULL, text, &size, 0), CUDA_SUCCESS);
    return text;
}

TEST(the_error_log_names_the_function_and_has_what_the_runtime_refused_itself) {
    void *memory = NULL;
    FAILS_RT(MemoryAllocation, cudaMalloc(&memory, (size_t)1 << 60));
    FAILS_RT(InvalidDevice, cudaSetDevice(77));
    const char *text = error_log();
    has(text, "cuMemAlloc_v2, of cudaMalloc, answered CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
    has(text, "cudaSetDevice answered cudaErrorInvalidDevice (101): invalid device ordinal");
    /* It only passes on what the driver's line says already; and a question is no refusal. */
    assert_null(strstr(text, "cudaMalloc answered"));
    assert_null(strstr(text, "cudaGetLastError answered"));
    cudaGetLastError();
}

static cudaError_t second_allocation(void **memory) {
    OK_RT(cudaMalloc(memory, 100));
    OK_RT(cudaFree(*memory));
    *memory = NULL;
    return cudaMalloc(memory, 100);
}

TEST(a_fault_is_meant_for_a_call_of_the_runtime_in_each_mode) {
    const int error = (int)cudaErrorMemoryAllocation;
    void *memory = NULL;
    OK_RT(cudaFree(NULL));
    assert_int_equal(soft->fault_arm_name("cudaMalloc", 2, error, SOFTGPU_FAULT_BEFORE), 0);
    uint64_t calls = soft->call_count(NULL);
    FAILS_RT(MemoryAllocation, second_allocation(&memory));
    assert_null(memory);
    FAILS_RT(MemoryAllocation, cudaGetLastError());
    assert_int_equal(soft->fault_reached(), 2);
    assert_int_equal(soft->fault_disarm(), 1);
    assert_int_equal(soft->fault_arm_name("cudaMalloc", 1, error, SOFTGPU_FAULT_BEFORE), 0);
    calls = soft->call_count(NULL);
    FAILS_RT(MemoryAllocation, cudaMalloc(&memory, 100));
    assert_int_equal(soft->call_count(NULL), calls); /* the driver was not even asked */

    soft->fault_arm_name("cudaMalloc", 2, error, SOFTGPU_FAULT_AFTER);
    FAILS_RT(MemoryAllocation, second_allocation(&memory));
    assert_non_null(memory);
    soft->fault_disarm();
    OK_RT(cudaFree(memory));

    memory = NULL;
    soft->fault_arm_name("cudaMalloc", 2, error, SOFTGPU_FAULT_SKIP);
    OK_RT(second_allocation(&memory));
    assert_null(memory);

    soft->fault_arm_name("cudaMalloc", 1, error, SOFTGPU_FAULT_FROM);
    FAILS_RT(MemoryAllocation, cudaMalloc(&memory, 100));
    FAILS_RT(MemoryAllocation, cudaFree(NULL));
    FAILS_RT(MemoryAllocation, cudaGetLastError());
    assert_int_equal(soft->fault_disarm(), 2);
    OK_RT(cudaMalloc(&memory, 100));
    OK_RT(cudaFree(memory));
}

TEST(faults_count_outermost_calls_of_all_threads_and_twins_and_know_only_names_that_exist) {
    union {
        void *address;
        cudaError_t (*record)(cudaEvent_t, cudaStream_t);
    } twin = {dlsym(RTLD_DEFAULT, "cudaEventRecord_ptsz")};
    cudaEvent_t event;
    OK_RT(cudaEventCreate(&event));
    const int error = (int)cudaErrorUnknown;
    soft->fault_arm_name("cudaEventRecord", 2, error, SOFTGPU_FAULT_BEFORE);
    OK_RT(cudaEventRecord(event, NULL));
    FAILS_RT(Unknown, twin.record(event, NULL));
    soft->fault_disarm();
    OK_RT(cudaEventDestroy(event));
    assert_int_equal(soft->fault_arm_name("cudaMallocc", 1, error, SOFTGPU_FAULT_BEFORE), -1);
    assert_int_equal(soft->fault_arm_name("cuda", 1, error, SOFTGPU_FAULT_BEFORE), -1);
    cudaGetLastError();
}
