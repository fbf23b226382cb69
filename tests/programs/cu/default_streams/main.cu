/* Two files, one compiled for the legacy default stream and one for a stream of each thread: which work waits for which. */
#include "check.h"
#include "streams.h"

#include <atomic>
#include <thread>

static void CUDART_CB hold(void *gate) {
    while (!((std::atomic<int> *)gate)->load())
        ;
}

__global__ void add(int *value, int what) {
    *value += what;
}

int main() {
    std::atomic<int> gate{0};
    int *value = to_device<int>(nullptr, 4), got[4];
    cudaStream_t blocking, free_running;
    MUST(cudaStreamCreate(&blocking));
    MUST(cudaStreamCreateWithFlags(&free_running, cudaStreamNonBlocking));
    MUST(cudaDeviceSynchronize());

    MUST(cudaLaunchHostFunc(free_running, hold, &gate)); // whoever does not wait for it is done at once
    add<<<1, 1>>>(value, 1);
    MUST(cudaStreamSynchronize(nullptr));
    say("the legacy stream does not wait for one that does not block", cudaStreamQuery(free_running));
    per_thread_add(value + 1, 10);
    MUST(per_thread_synchronize());
    say("nor does the thread's", cudaStreamQuery(free_running));
    gate = 1;
    MUST(cudaDeviceSynchronize());

    gate = 0;
    MUST(cudaLaunchHostFunc(blocking, hold, &gate));
    per_thread_add(value + 1, 10); // of the thread's own stream, which waits for the legacy one alone
    MUST(per_thread_synchronize());
    say("the thread's stream does not wait for a blocking one", cudaStreamQuery(blocking));
    add<<<1, 1>>>(value, 1);
    say("the legacy stream does", cudaStreamQuery(cudaStreamLegacy));
    per_thread_add(value + 2, 100);
    say("the thread's stream waits for the legacy one", cudaStreamQuery(cudaStreamPerThread));
    cudaGetLastError();
    std::thread other([&] { // another thread's stream begins behind the legacy one as well
        per_thread_add(value + 3, 1000);
        MUST(per_thread_synchronize());
    });
    gate = 1;
    other.join();
    MUST(cudaDeviceSynchronize());
    to_host(got, value, 4);
    printf("%d %d %d %d\n", got[0], got[1], got[2], got[3]);
    right("all of it was done", got[0] == 2 && got[1] == 20 && got[2] == 100 && got[3] == 1000);
    MUST(cudaStreamDestroy(blocking));
    MUST(cudaStreamDestroy(free_running));
    MUST(cudaFree(value));
    return 0;
}
