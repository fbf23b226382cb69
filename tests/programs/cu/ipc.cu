/* Two processes: one's memory is written by the other, in the order that an event of the first gives them. */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

const int count = 4000;

struct message {
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t ready, done;
};

__global__ void fill(int *values, int from) {
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        values[i] = from + i;
}

__global__ void change(int *values) {
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        values[i] = values[i] * 2 + 1;
}

static int child(int from, int to) {
    message given;
    int *values;
    cudaEvent_t ready, done;
    if (read(from, &given, sizeof given) != sizeof given)
        return 1;
    MUST(cudaIpcOpenMemHandle((void **)&values, given.memory, cudaIpcMemLazyEnablePeerAccess));
    MUST(cudaIpcOpenEventHandle(&ready, given.ready));
    MUST(cudaIpcOpenEventHandle(&done, given.done));
    MUST(cudaStreamWaitEvent(nullptr, ready, 0));
    change<<<1, 128>>>(values);
    MUST(cudaEventRecord(done, nullptr));
    MUST(cudaEventSynchronize(done));
    MUST(cudaIpcCloseMemHandle(values));
    MUST(cudaEventDestroy(ready));
    MUST(cudaEventDestroy(done));
    return write(to, "!", 1) != 1;
}

int main() {
    int there[2], back[2], status = 0;
    char letter;
    if (pipe(there) || pipe(back))
        return 1;
    fflush(stdout);
    pid_t process = fork(); // before the runtime is used
    if (process == 0) {
        status = child(there[0], back[1]);
        fflush(stdout);
        _exit(status);
    }
    static int got[count], want[count];
    message own = {};
    cudaEvent_t ready, done;
    int *values = to_device<int>(nullptr, count);
    MUST(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming | cudaEventInterprocess));
    MUST(cudaEventCreateWithFlags(&done, cudaEventDisableTiming | cudaEventInterprocess));
    fill<<<1, 128>>>(values, 50);
    MUST(cudaEventRecord(ready, nullptr));
    MUST(cudaEventRecord(done, nullptr));
    MUST(cudaIpcGetMemHandle(&own.memory, values));
    MUST(cudaIpcGetEventHandle(&own.ready, ready));
    MUST(cudaIpcGetEventHandle(&own.done, done));
    if (write(there[1], &own, sizeof own) != sizeof own || read(back[0], &letter, 1) != 1)
        return 1;
    MUST(cudaEventSynchronize(done));
    to_host(got, values, count);
    for (int i = 0; i < count; i++)
        want[i] = (50 + i) * 2 + 1;
    same("what the other process made of it", got, want, count);
    waitpid(process, &status, 0);
    printf("it ended with %d\n", status);
    void *opened;
    say("one's own handle", cudaIpcOpenMemHandle(&opened, own.memory, cudaIpcMemLazyEnablePeerAccess));
    cudaGetLastError();
    MUST(cudaEventDestroy(ready));
    MUST(cudaEventDestroy(done));
    MUST(cudaFree(values));
    return 0;
}
