/* Device printf in all its formats, in order within a thread, and a device assertion, which ends the context. */
// findings: assertion
#include "check.h"

#include <cassert>
#include <sys/wait.h>
#include <unistd.h>

__global__ void formats(const char *text) {
    printf("integers %d %5d %-5d| %05d %+d %u %x %X %o\n", -3, 42, 42, 42, 42, 4000000000u, 255, 255, 8);
    printf("long %lld %llu %#llx\n", -9000000000LL, 18000000000000000000ULL, 1ULL << 40);
    printf("floats %f %.3f %10.2e %g %G %a\n", 1.5, 2.0 / 3, 12345.678, 0.0001, 1e20, 1.0);
    printf("characters %c%c, text %s, %-6s|%6s|, 100%%\n", 'o', 'k', text, "ab", "cd");
    printf("%*d|%s|\n", 6, 7, "");
}

__global__ void in_order(int rounds) {
    for (int i = 0; i < rounds; i++)
        if (i % 3 == (int)threadIdx.x)
            printf("round %d by thread %d of block (%d, %d)\n", i, (int)threadIdx.x, (int)blockIdx.x, (int)blockIdx.y);
}

__global__ void returns(int *result) {
    *result = printf("%d %d\n", 1, 2);
}

__global__ void asserts(int limit) {
    assert((int)threadIdx.x < limit && "too many threads");
}

static int assertion() {
    asserts<<<1, 4>>>(4);
    say("one that holds", cudaDeviceSynchronize());
    asserts<<<1, 4>>>(3);
    say("one that does not", cudaDeviceSynchronize());
    say("afterwards", cudaDeviceSynchronize());
    return 0;
}

int main() {
    char *text;
    int result = 0, *device_result;
    size_t size = 0;
    fflush(stdout);
    pid_t child = fork(); // before this process uses the runtime
    if (child == 0) {
        result = assertion();
        fflush(stdout);
        _exit(result);
    }
    waitpid(child, &result, 0);
    printf("the child ended with %d\n", result);
    MUST(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1 << 21));
    MUST(cudaDeviceGetLimit(&size, cudaLimitPrintfFifoSize));
    right("room for what is printed", size >= 1 << 21);
    fflush(stdout);
    text = to_device("device", 7);
    device_result = to_device<int>(nullptr, 1);
    formats<<<1, 1>>>(text);
    MUST(cudaDeviceSynchronize());
    in_order<<<1, 1>>>(7);
    MUST(cudaDeviceSynchronize());
    returns<<<1, 1>>>(device_result);
    MUST(cudaDeviceSynchronize());
    fflush(stdout);
    to_host(&result, device_result, 1);
    printf("printf gives the number of its arguments: %d\n", result);
    MUST(cudaFree(text));
    MUST(cudaFree(device_result));
    return 0;
}
