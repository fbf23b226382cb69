/* Kernels that are loaded at run time from PTX of the program's own: found by name, counted, given attributes, launched. */
#include "check.h"

#include <cstring>

static const char text[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 rounds = 3;
.visible .const .align 4 .u32 add = 10;
.visible .entry scale(.param .u64 values, .param .u32 by) {
    .reg .u64 %at, %to;
    .reg .u32 %i, %v, %by, %n, %c;
    mov.u32 %i, %tid.x;
    ld.param.u64 %at, [values];
    ld.param.u32 %by, [by];
    cvta.to.global.u64 %to, %at;
    mad.wide.u32 %to, %i, 4, %to;
    ld.global.u32 %v, [%to];
    ld.const.u32 %c, [add];
    mad.lo.u32 %v, %v, %by, %c;
    st.global.u32 [%to], %v;
    atom.global.add.u32 %n, [rounds], 1;
    ret;
}
.visible .entry clear(.param .u64 values) {
    .reg .u64 %at, %to;
    .reg .u32 %i;
    mov.u32 %i, %tid.x;
    ld.param.u64 %at, [values];
    cvta.to.global.u64 %to, %at;
    mad.wide.u32 %to, %i, 4, %to;
    st.global.u32 [%to], 0;
    ret;
}
)";

int main() {
    const int count = 32;
    int values[count], want[count], by = 3, rounds = 0;
    unsigned kernels = 0;
    cudaLibrary_t library, other;
    cudaKernel_t scale, clear, all[2], missing;
    void *address;
    size_t size = 0;
    for (int i = 0; i < count; i++) {
        values[i] = i * i;
        want[i] = i * i * by + 10;
    }
    int *device = to_device(values, count);
    MUST(cudaLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
    MUST(cudaLibraryGetKernelCount(&kernels, library));
    MUST(cudaLibraryEnumerateKernels(all, 2, library));
    MUST(cudaLibraryGetKernel(&scale, library, "scale"));
    MUST(cudaLibraryGetKernel(&clear, library, "clear"));
    printf("%u kernels\n", kernels);
    right("both are enumerated", (all[0] == scale && all[1] == clear) || (all[0] == clear && all[1] == scale));
    void *arguments[] = {&device, &by};
    MUST(cudaLaunchKernel((const void *)scale, dim3(1), dim3(count), arguments, 0, nullptr));
    to_host(values, device, count);
    same("scaled", values, want, count);
    MUST(cudaLibraryGetGlobal(&address, &size, library, "rounds"));
    MUST(cudaMemcpy(&rounds, address, sizeof rounds, cudaMemcpyDeviceToHost));
    printf("a variable of %zu bytes: %d\n", size, rounds);
    right("counted up", rounds == 3 + count);
    say("no such kernel", cudaLibraryGetKernel(&missing, library, "absent"));
    say("no such variable", cudaLibraryGetGlobal(&address, &size, library, "absent"));
    cudaGetLastError();

    cudaFuncAttributes attributes;
    MUST(cudaFuncGetAttributes(&attributes, (const void *)scale));
    printf("constants of %zu bytes\n", attributes.constSizeBytes);
    MUST(cudaKernelSetAttributeForDevice(scale, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024, 0));
    MUST(cudaFuncGetAttributes(&attributes, (const void *)scale));
    printf("at most %d bytes of dynamic shared memory\n", attributes.maxDynamicSharedSizeBytes);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(count);
    MUST(cudaLaunchKernelExC(&config, (const void *)clear, arguments));
    to_host(values, device, count);
    memset(want, 0, sizeof want);
    same("cleared", values, want, count);

    MUST(cudaLibraryLoadData(&other, text, nullptr, nullptr, 0, nullptr, nullptr, 0)); // the same text has variables of its own
    MUST(cudaLibraryGetGlobal(&address, &size, other, "rounds"));
    MUST(cudaMemcpy(&rounds, address, sizeof rounds, cudaMemcpyDeviceToHost));
    printf("loaded again: %d\n", rounds);
    MUST(cudaLibraryUnload(other));
    MUST(cudaLibraryUnload(library));
    MUST(cudaFree(device));
    return 0;
}
