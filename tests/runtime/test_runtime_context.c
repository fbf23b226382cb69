/* Which context a call uses, and what is kept for a thread. */
#include "runtime_test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static const softgpu_control *soft;

BEFORE_TESTS {
    setenv("SOFTGPU_DEVICES", "2", 1);
    soft = open_softgpu();
    return 0;
}

static void *function(const char *name) {
    return dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), name);
}
#define DRIVER(name, ...)                                                                          \
    (((union {                                                                                     \
         void *address;                                                                            \
         CUresult (*call)(__VA_ARGS__);                                                            \
     }){function(#name)})                                                                          \
         .call)

TEST(a_child_forked_before_first_use_may_use_the_runtime_and_one_forked_later_may_not) {
    for (int used = 0; used < 2; used++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0)
            _exit((int)cudaFree(NULL));
        waitpid(child, &status, 0);
        assert_int_equal(WEXITSTATUS(status), used ? cudaErrorInitializationError : cudaSuccess);
        OK_RT(cudaFree(NULL));
    }
}

static void *in_thread(void *unused) {
    int device = -1;
    OK_RT(cudaGetLastError());
    OK_RT(cudaGetDevice(&device));
    assert_int_equal(device, 0);
    return NULL;
}

TEST(the_last_error_and_the_device_are_the_threads) {
    pthread_t thread;
    int device = -1;
    OK_RT(cudaSetDevice(1));
    FAILS_RT(InvalidDevice, cudaSetDevice(2));
    assert_int_equal(pthread_create(&thread, NULL, in_thread, NULL), 0);
    pthread_join(thread, NULL);
    FAILS_RT(InvalidDevice, cudaPeekAtLastError());
    FAILS_RT(InvalidDevice, cudaGetLastError());
    OK_RT(cudaGetLastError());
    OK_RT(cudaGetDevice(&device));
    assert_int_equal(device, 1);
    OK_RT(cudaSetDevice(0));
}

TEST(a_context_that_the_program_made_current_is_used) {
    CUcontext own = NULL, now = NULL;
    cudaPointerAttributes attributes;
    void *memory = NULL;
    int device = -1;
    assert_int_equal(DRIVER(cuCtxCreate_v2, CUcontext *, unsigned, CUdevice)(&own, 0, 1),
                     CUDA_SUCCESS);
    OK_RT(cudaMalloc(&memory, 100));
    DRIVER(cuCtxGetCurrent, CUcontext *)(&now);
    assert_ptr_equal(now, own);
    OK_RT(cudaPointerGetAttributes(&attributes, memory));
    assert_int_equal(attributes.device, 1);
    OK_RT(cudaGetDevice(&device));
    assert_int_equal(device, 1);
    OK_RT(cudaFree(memory));
    assert_int_equal(DRIVER(cuCtxDestroy_v2, CUcontext)(own), CUDA_SUCCESS);
    OK_RT(cudaSetDevice(0));
}

TEST(after_a_reset_everything_can_be_used_again) {
    void *memory = NULL;
    for (int i = 0; i < 3; i++) {
        OK_RT(cudaMalloc(&memory, 100));
        OK_RT(cudaDeviceReset());
        OK_RT(cudaFree(NULL));
    }
    FAILS_RT(InvalidValue, cudaFree(memory));
    cudaGetLastError();
}

TEST(a_primary_context_is_retained_once) {
    uint64_t before;
    OK_RT(cudaSetDevice(0));
    before = soft->call_count("cuDevicePrimaryCtxRetain");
    for (int i = 0; i < 3; i++) {
        OK_RT(cudaSetDevice(0));
        OK_RT(cudaFree(NULL));
    }
    assert_int_equal(soft->call_count("cuDevicePrimaryCtxRetain"), before);
}

TEST(twins_use_the_threads_own_default_stream) {
    cudaStream_t stream = NULL;
    unsigned flags;
    union {
        void *address;
        cudaError_t (*begin)(cudaStream_t, cudaStreamCaptureMode);
    } twin = {dlsym(RTLD_DEFAULT, "cudaStreamBeginCapture_ptsz")};
    cudaStreamCaptureStatus status;
    cudaGraph_t graph;
    assert_non_null(twin.address);
    OK_RT(twin.begin(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK_RT(cudaStreamIsCapturing(CU_STREAM_PER_THREAD, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK_RT(cudaStreamEndCapture(CU_STREAM_PER_THREAD, &graph));
    OK_RT(cudaGraphDestroy(graph));
    /* The legacy stream cannot be captured. */
    FAILS_RT(StreamCaptureUnsupported,
             cudaStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
    cudaGetLastError();
    OK_RT(cudaStreamGetFlags(stream, &flags));
}
