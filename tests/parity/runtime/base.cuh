/*
 * What the questions are made of: objects, made anew for each question, and the answer as a line.
 * A child asks until it crashes, hangs or its context is lost; then another goes on behind that
 * question. A child that ends by itself has asked all. What one question leaves, such as a stream
 * that captures, is there for the next ones of its child, so that a replay needs its children to end
 * where the recording's did: `questions N...` ends one behind each of these questions, too. Of `xN`
 * only that is done which the question would leave. `tN`: N seconds for each, and not 5.
 */
#include <cuda_runtime.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

__device__ int symbol[16];
__global__ void kernel(int *out) {
    if (out)
        *out = 1;
}

static char out[65536], zero[65536], plain[65536], *no_arguments[4];
static int null_argument[2];
static void *arguments[] = {null_argument};

static void host_function(void *) {}
static void stream_callback(cudaStream_t, cudaError_t, void *) {}

static void *device_memory() {
    void *made = nullptr;
    cudaMalloc(&made, 65536);
    return made;
}
static void *freed_memory() {
    void *made = device_memory();
    cudaFree(made);
    return made;
}
static void *pinned() {
    void *made = nullptr;
    cudaMallocHost(&made, 65536);
    return made;
}
static void *managed() {
    void *made = nullptr;
    cudaMallocManaged(&made, 65536);
    return made;
}
static void *registered() {
    void *made = mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cudaHostRegister(made, 65536, 0);
    return made;
}
static void *from_pool() {
    void *made = nullptr;
    cudaMallocAsync(&made, 65536, nullptr);
    return made;
}
static cudaStream_t stream() {
    cudaStream_t made = nullptr;
    cudaStreamCreate(&made);
    return made;
}
static cudaStream_t capturing() {
    cudaStream_t made = stream();
    cudaStreamBeginCapture(made, cudaStreamCaptureModeRelaxed);
    return made;
}
static cudaEvent_t event() {
    cudaEvent_t made = nullptr;
    cudaEventCreate(&made);
    cudaEventRecord(made, nullptr);
    return made;
}
static cudaEvent_t unrecorded() {
    cudaEvent_t made = nullptr;
    cudaEventCreate(&made);
    return made;
}
static cudaEvent_t untimed() {
    cudaEvent_t made = nullptr;
    cudaEventCreateWithFlags(&made, cudaEventDisableTiming);
    return made;
}
static cudaGraph_t graph() {
    cudaGraph_t made = nullptr;
    cudaGraphCreate(&made, 0);
    return made;
}
static cudaGraphNode_t node() {
    cudaGraphNode_t made = nullptr;
    cudaGraphAddEmptyNode(&made, graph(), nullptr, 0);
    return made;
}
static cudaGraphExec_t exec() {
    cudaGraphExec_t made = nullptr;
    cudaGraph_t of = graph();
    cudaGraphNode_t inside;
    cudaGraphAddEmptyNode(&inside, of, nullptr, 0);
    cudaGraphInstantiate(&made, of, 0);
    return made;
}
static cudaMemPool_t pool() {
    cudaMemPool_t made = nullptr;
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    cudaMemPoolCreate(&made, &props);
    return made;
}
static cudaArray_t array() {
    cudaArray_t made = nullptr;
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
    cudaMallocArray(&made, &desc, 16, 16);
    return made;
}
static cudaMipmappedArray_t mipmapped() {
    cudaMipmappedArray_t made = nullptr;
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
    cudaMallocMipmappedArray(&made, &desc, make_cudaExtent(16, 16, 0), 2);
    return made;
}
static cudaUserObject_t object() {
    cudaUserObject_t made = nullptr;
    cudaUserObjectCreate(&made, plain, host_function, 1, cudaUserObjectNoDestructorSync);
    return made;
}
static const cudaChannelFormatDesc *floats() {
    static cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
    return &desc;
}
static cudaExtent extent(size_t x, size_t y, size_t z) {
    return make_cudaExtent(x, y, z);
}
static cudaPitchedPtr pitched(void *memory) {
    return make_cudaPitchedPtr(memory, 512, 16, 16);
}
static cudaMemLocation location(int type, int id) {
    cudaMemLocation made = {};
    made.type = (cudaMemLocationType)type;
    made.id = id;
    return made;
}
/* A value of any type, all of it zero. */
template <typename T> static T none() {
    T made;
    memset(&made, 0, sizeof made);
    return made;
}

struct question {
    const char *text;
    cudaError_t (*ask)();
};
extern const struct question questions[];
extern const int question_count;

static char *ends_behind, *left_out; /* of each question */
static unsigned seconds = 5;

static int lost(cudaError_t error) {
    return error != cudaSuccess && error != cudaErrorStreamCaptureUnsupported && error != cudaErrorNotReady;
}

static void ask_from(int *at) {
    alarm(4 * seconds);
    cudaFree(nullptr);
    for (; *at < question_count; ++*at) {
        alarm(seconds);
        if (left_out[*at]) {
            if (strstr(questions[*at].text, "capturing()"))
                capturing();
            continue;
        }
        memset(out, 0, sizeof out);
        memset(zero, 0, sizeof zero);
        cudaGetLastError();
        cudaError_t error = questions[*at].ask(), peek = cudaPeekAtLastError(), last = cudaGetLastError();
        printf("%s = %d, peek %d, last %d, then %d\n", questions[*at].text, error, peek, last, cudaPeekAtLastError());
        fflush(stdout);
        int is_lost = lost(cudaDeviceSynchronize());
        if (is_lost) {
            printf("# the context is lost\n");
            fflush(stdout);
        }
        if (is_lost || ends_behind[*at]) {
            ++*at;
            _exit(3);
        }
    }
    _exit(0);
}

int main(int count, char **numbers) {
    ends_behind = (char *)calloc((size_t)question_count, 1);
    left_out = (char *)calloc((size_t)question_count, 1);
    for (int i = 1; i < count; i++)
        if (numbers[i][0] == 't')
            seconds = (unsigned)atoi(numbers[i] + 1);
        else if (numbers[i][0] == 'x')
            left_out[atoi(numbers[i] + 1) % question_count] = 1;
        else if (atoi(numbers[i]) < question_count)
            ends_behind[atoi(numbers[i])] = 1;
    int *at = (int *)mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    while (*at < question_count) {
        int status = 0, before = *at;
        pid_t child = fork();
        if (child == 0)
            ask_from(at);
        waitpid(child, &status, 0);
        if (WIFSIGNALED(status)) {
            printf("%s = signal %d\n", questions[*at].text, WTERMSIG(status));
            fflush(stdout);
            ++*at;
        } else if (WEXITSTATUS(status) != 3 && *at == before) {
            break;
        }
    }
    printf("# %d questions\n", question_count);
    return 0;
}
