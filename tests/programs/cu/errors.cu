/* A program's life with errors: which are kept, how long, which end a context, and what their names are. */
// findings: out-of-bounds
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

__global__ void store(int *where) {
    *where = 1;
}

__global__ __launch_bounds__(64) void bounded(int *where) {
    where[threadIdx.x] = (int)threadIdx.x;
}

/* An address that is nobody's: the context is lost, and each call says so. */
static int lost_context() {
    int *good = to_device<int>(nullptr, 1);
    store<<<1, 1>>>((int *)8);
    say("the launch itself", cudaGetLastError());
    say("synchronize", cudaDeviceSynchronize());
    say("peek", cudaPeekAtLastError());
    say("last", cudaGetLastError());
    say("malloc", cudaMalloc(&good, 4));
    say("stream", cudaStreamSynchronize(nullptr));
    return 0;
}

static void in_a_child(int (*what)()) {
    fflush(stdout);
    pid_t child = fork();
    int status = 0;
    if (child == 0) {
        status = what();
        fflush(stdout);
        _exit(status);
    }
    waitpid(child, &status, 0);
    printf("the child ended with %d\n", status);
}

static void kept() {
    int *memory = to_device<int>(nullptr, 64);
    void *none;
    say("too much", cudaMalloc(&none, (size_t)1 << 50));
    say("peek", cudaPeekAtLastError());
    say("a call that succeeds", cudaDeviceSynchronize());
    say("does not clear it: peek", cudaPeekAtLastError());
    say("get", cudaGetLastError());
    say("once", cudaGetLastError());
    say("no such device", cudaSetDevice(99));
    say("the later one is kept: free of nobody's", cudaFree((void *)0x123456));
    say("get", cudaGetLastError());
    bounded<<<1, 128>>>(memory);
    say("more threads than the bounds allow", cudaGetLastError());
    store<<<0, 1>>>(memory);
    say("no blocks", cudaGetLastError());
    store<<<1, 1, 1 << 24>>>(memory);
    say("shared memory", cudaGetLastError());
    store<<<dim3(1, 1 << 20), 1>>>(memory);
    say("grid", cudaGetLastError());
    store<<<1, 1>>>(memory);
    say("all right", cudaGetLastError());
    say("synchronize", cudaDeviceSynchronize());
    MUST(cudaFree(memory));
}

int main() {
    in_a_child(lost_context); // before this process uses the runtime
    kept();
    for (int error : {0, 1, 2, 9, 35, 98, 100, 209, 400, 600, 700, 710, 719, 720, 801, 900, 999, 12345})
        printf("%d: %s: %s\n", error, cudaGetErrorName((cudaError_t)error), cudaGetErrorString((cudaError_t)error));
    return 0;
}
