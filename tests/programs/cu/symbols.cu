/* Variables of every kind: in namespaces, static, of templates, constant, managed; by copies and by address. */
#include "check.h"

namespace physics {
__constant__ float weights[4] = {0.5f, 0.25f, 0.125f, 0.125f};
__device__ int hits[8];
} // namespace physics

static __device__ unsigned long long counter = 40;
struct parameters {
    int scale, offset;
    char name[8];
};
__constant__ parameters table[2];
__managed__ int ledger[4] = {1, 2, 3, 4};
__device__ int *pointer;
template <typename T> __device__ T kept = T(7);

__global__ void work(float *out) {
    int i = (int)threadIdx.x;
    physics::hits[i] += i;
    atomicAdd(&counter, 2);
    out[i] = physics::weights[i % 4] * (float)(table[i % 2].scale * i + table[i % 2].offset);
    if (i < 4)
        atomicAdd(&ledger[i], i);
    if (i == 0) {
        kept<int> *= 6;
        kept<double> += 0.25;
        *pointer = table[1].name[2];
    }
}

int main() {
    const int count = 8;
    float host[count], wanted[count];
    const float weights[4] = {0.5f, 0.25f, 0.125f, 0.125f};
    parameters set[2] = {{3, 1, "one"}, {-2, 10, "two"}};
    int hits[count], first[count], integer, letter = 0, *place = to_device<int>(nullptr, 1);
    unsigned long long counted;
    double real;
    size_t size;
    void *address;
    cudaStream_t stream;
    MUST(cudaStreamCreate(&stream));
    float *out = to_device<float>(nullptr, count);
    MUST(cudaMemcpyToSymbol(table, set, sizeof set[0]));
    MUST(cudaMemcpyToSymbolAsync(table, &set[1], sizeof set[1], sizeof set[0], cudaMemcpyHostToDevice, stream));
    MUST(cudaMemcpyToSymbol(pointer, &place, sizeof place));
    MUST(cudaStreamSynchronize(stream));
    work<<<1, count>>>(out);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    to_host(host, out, count);
    for (int i = 0; i < count; i++) {
        wanted[i] = weights[i % 4] * (float)(set[i % 2].scale * i + set[i % 2].offset);
        first[i] = i;
    }
    same("weighted", host, wanted, count);
    MUST(cudaMemcpyFromSymbol(hits, physics::hits, sizeof hits));
    same("hits", hits, first, count);
    MUST(cudaMemcpyFromSymbol(hits, physics::hits, 2 * sizeof(int), 5 * sizeof(int)));
    printf("hits from the sixth: %d %d\n", hits[0], hits[1]);
    MUST(cudaMemcpyFromSymbol(&counted, counter, sizeof counted));
    MUST(cudaMemcpyFromSymbol(&integer, kept<int>, sizeof integer));
    MUST(cudaMemcpyFromSymbolAsync(&real, kept<double>, sizeof real, 0, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    to_host(&letter, place, 1);
    printf("counter %llu, kept %d and %g, letter %c\n", counted, integer, real, letter);
    printf("ledger %d %d %d %d\n", ledger[0], ledger[1], ledger[2], ledger[3]);
    ledger[2] = 100; // the host's writes are seen as well
    work<<<1, count>>>(out);
    MUST(cudaDeviceSynchronize());
    printf("ledger %d\n", ledger[2]);

    MUST(cudaGetSymbolSize(&size, table));
    right("size of the table", size == sizeof set);
    MUST(cudaGetSymbolAddress(&address, physics::hits));
    MUST(cudaMemset(address, 0, sizeof hits));
    MUST(cudaMemcpyFromSymbol(hits, physics::hits, sizeof hits));
    printf("after a memset at its address: %d\n", hits[7]);
    say("beyond its end", cudaMemcpyToSymbol(table, set, sizeof set, 4));
    say("from a variable of the host", cudaMemcpyFromSymbol(&integer, &letter, sizeof integer));
    say("the address of one", cudaGetSymbolAddress(&address, &letter));
    say("to a symbol, device to host", cudaMemcpyToSymbol(table, set, 4, 0, cudaMemcpyDeviceToHost));
    cudaGetLastError();
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(out));
    MUST(cudaFree(place));
    return 0;
}
