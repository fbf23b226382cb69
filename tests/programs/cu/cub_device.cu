/* CUB for whole arrays: reduce, scan, sort, select and runs. CUB asks first how much room each needs. */
#include "check.h"

#include <algorithm>
#include <cub/cub.cuh>
#include <numeric>
#include <vector>

const int count = 3000;

/* Calls it twice: for the size of its room, then to do the work. */
template <typename F> static void with_room(F call) {
    void *room = nullptr;
    size_t bytes = 0;
    MUST(call(room, bytes));
    MUST(cudaMalloc(&room, bytes ? bytes : 1));
    MUST(call(room, bytes));
    MUST(cudaFree(room));
}

struct is_odd {
    __host__ __device__ bool operator()(int x) const {
        return x % 2 != 0;
    }
};

int main() {
    std::vector<int> in(count), got(count), want(count);
    int one = 0, runs = 0;
    for (int i = 0; i < count; i++)
        in[(size_t)i] = (int)((unsigned)i * 2654435761u % 1009);
    int *device = to_device(in.data(), count), *out = to_device<int>(nullptr, count), *number = to_device<int>(nullptr, 1);

    with_room([&](void *room, size_t &bytes) { return cub::DeviceReduce::Sum(room, bytes, device, number, count); });
    to_host(&one, number, 1);
    printf("sum %d\n", one);
    right("the sum", one == std::accumulate(in.begin(), in.end(), 0));
    with_room([&](void *room, size_t &bytes) { return cub::DeviceScan::ExclusiveSum(room, bytes, device, out, count); });
    to_host(got.data(), out, count);
    std::exclusive_scan(in.begin(), in.end(), want.begin(), 0);
    same("scan", got.data(), want.data(), count);
    with_room([&](void *room, size_t &bytes) { return cub::DeviceSelect::If(room, bytes, device, out, number, count, is_odd()); });
    to_host(&one, number, 1);
    to_host(got.data(), out, count);
    want.clear();
    std::copy_if(in.begin(), in.end(), std::back_inserter(want), is_odd());
    printf("%d selected\n", one);
    right("as many", (size_t)one == want.size());
    same("selected", got.data(), want.data(), want.size());

    with_room([&](void *room, size_t &bytes) { return cub::DeviceRadixSort::SortKeys(room, bytes, device, out, count); });
    std::vector<int> sorted = in;
    std::sort(sorted.begin(), sorted.end());
    to_host(got.data(), out, count);
    same("sorted", got.data(), sorted.data(), count);
    int *lengths = to_device<int>(nullptr, count), *keys = to_device<int>(nullptr, count);
    with_room([&](void *room, size_t &bytes) {
        return cub::DeviceRunLengthEncode::Encode(room, bytes, out, keys, lengths, number, count);
    });
    to_host(&runs, number, 1);
    to_host(got.data(), lengths, (size_t)runs);
    want.clear();
    for (size_t i = 0; i < count; i++)
        if (i && sorted[i] == sorted[i - 1])
            want.back()++;
        else
            want.push_back(1);
    printf("%d runs\n", runs);
    right("as many", (size_t)runs == want.size());
    same("their lengths", got.data(), want.data(), want.size());
    for (int *each : {device, out, number, lengths, keys})
        MUST(cudaFree(each));
    return 0;
}
