/* What the programs share: calls that must succeed, results that are compared with the host's. */
#pragma once
#include <stdio.h>
#include <stdlib.h>

#define MUST(call) must((call), #call, __LINE__)

static inline void must(cudaError_t error, const char *call, int line) {
    if (error == cudaSuccess)
        return;
    printf("line %d: %s: %s\n", line, call, cudaGetErrorName(error));
    exit(1);
}

static inline void say(const char *what, cudaError_t error) {
    printf("%s: %s\n", what, cudaGetErrorName(error));
}

/* Ends the program where the device and the host disagree. */
static inline void right(const char *what, bool is_right) {
    printf("%s: %s\n", what, is_right ? "as the host has it" : "WRONG");
    if (!is_right)
        exit(1);
}

template <typename T>
static void same(const char *what, const T *got, const T *want, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!(got[i] == want[i])) {
            printf("%s: number %zu of %zu is WRONG: %.17g, not %.17g\n", what, i, count,
                   (double)got[i], (double)want[i]);
            exit(1);
        }
    printf("%s: all %zu as the host has them\n", what, count);
}

/* A device's copy of `count` values, or zeros, there for streams that wait for no other, too;
 * and the way back. */
template <typename T> static T *to_device(const T *values, size_t count) {
    T *device;
    MUST(cudaMalloc(&device, count * sizeof *values));
    if (values)
        MUST(cudaMemcpy(device, values, count * sizeof *values, cudaMemcpyHostToDevice));
    else
        MUST(cudaMemset(device, 0, count * sizeof *values));
    MUST(cudaDeviceSynchronize());
    return device;
}

template <typename T> static void to_host(T *values, const T *device, size_t count) {
    MUST(cudaMemcpy(values, device, count * sizeof *values, cudaMemcpyDeviceToHost));
}
