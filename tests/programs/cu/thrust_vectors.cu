/* Thrust's vectors and algorithms: reduce, scan, sort by key, select, unique, and a stream of the program's. */
#include "check.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>
#include <vector>

struct squared {
    __host__ __device__ long long operator()(int x) const {
        return (long long)x * x;
    }
};
struct is_small {
    __host__ __device__ bool operator()(int x) const {
        return x < 20;
    }
};

int main() {
    const int count = 1500;
    std::vector<int> in(count), want(count);
    for (int i = 0; i < count; i++)
        in[(size_t)i] = (int)((unsigned)i * 2246822519u % 97);
    thrust::device_vector<int> values(in.begin(), in.end()), other(count);
    int sum = thrust::reduce(values.begin(), values.end());
    printf("sum %d\n", sum);
    right("the sum", sum == std::accumulate(in.begin(), in.end(), 0));
    long long squares = thrust::transform_reduce(values.begin(), values.end(), squared(), 0LL, thrust::plus<long long>());
    printf("of squares %lld\n", squares);
    right("of squares", squares == std::inner_product(in.begin(), in.end(), in.begin(), 0LL));
    thrust::inclusive_scan(values.begin(), values.end(), other.begin(), thrust::maximum<int>());
    thrust::host_vector<int> host = other;
    std::inclusive_scan(in.begin(), in.end(), want.begin(), [](int a, int b) { return std::max(a, b); });
    same("greatest so far", host.data(), want.data(), count);

    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    other.resize(count);
    auto end = thrust::copy_if(thrust::cuda::par.on(stream), values.begin(), values.end(), other.begin(), is_small());
    MUST(cudaStreamSynchronize(stream));
    host.assign(other.begin(), end);
    want.clear();
    std::copy_if(in.begin(), in.end(), std::back_inserter(want), is_small());
    printf("%zu are small\n", host.size());
    right("as many", host.size() == want.size());
    same("which are small", host.data(), want.data(), want.size());

    thrust::sequence(other.begin(), other.end());
    thrust::stable_sort_by_key(values.begin(), values.end(), other.begin(), thrust::greater<int>());
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return in[(size_t)a] > in[(size_t)b]; });
    host = other;
    same("sorted by key", host.data(), order.data(), count);
    thrust::device_vector<int> keys(count), sums(count);
    auto ends = thrust::reduce_by_key(values.begin(), values.end(), other.begin(), keys.begin(), sums.begin());
    std::map<int, int, std::greater<int>> by_key;
    for (int i = 0; i < count; i++)
        by_key[in[(size_t)i]] += i;
    want.clear();
    for (auto &[key, total] : by_key)
        want.push_back(total);
    host.assign(sums.begin(), ends.second);
    right("as many keys", host.size() == want.size());
    same("reduced by key", host.data(), want.data(), want.size());
    host.assign(keys.begin(), thrust::unique_copy(values.begin(), values.end(), keys.begin()));
    std::vector<int> different;
    for (auto &[key, total] : by_key)
        different.push_back(key);
    right("as many different ones", host.size() == different.size());
    same("different ones", host.data(), different.data(), different.size());
    MUST(cudaStreamDestroy(stream));
    try {
        thrust::device_vector<int> large((size_t)1 << 48);
        printf("too much: no exception\n");
    } catch (const std::bad_alloc &) {
        printf("too much: std::bad_alloc\n");
    }
    say("which is not left", cudaGetLastError());
    return 0;
}
