"""nvcc of PyPI, as a user calls it, and what it makes, loaded and launched: text, machine code, in place of which the
text comes, and fatbins. The newest nvcc writes PTX that is newer than the modelled driver."""
import ctypes
import os
import re
import subprocess
import sysconfig
import tempfile

from tap import expect, expect_equal, main

CUDA = ctypes.CDLL("libcuda.so.1")
TOOLKIT = os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "cu13")
# Behind the folder of gpumem run, and before whatever nvcc the machine has.
OURS, _, OTHERS = os.environ["PATH"].partition(":")
os.environ["PATH"] = ":".join((OURS, os.path.join(TOOLKIT, "bin"), OTHERS))
SOURCE = r"""
#include <cuda_fp16.h>
__constant__ float scale = 3;
__device__ int launches;
template <class T> __device__ T warp_sum(T value) {
    for (int at = 16; at > 0; at /= 2)
        value += __shfl_down_sync(~0u, value, at);
    return value;
}
extern "C" __global__ void __launch_bounds__(256) sums(const float *in, float *out, int count) {
    __shared__ float of_warp[8];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        sum += in[i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = warp_sum(threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) {
        atomicAdd(out, scale * sum);
        atomicAdd(&launches, 1);
    }
}
extern "C" __global__ void halves(const __half2 *in, __half2 *out) {
    out[threadIdx.x] = __hfma2(in[threadIdx.x], in[threadIdx.x], __float2half2_rn(0.5f));
}
"""


def check(result):
    expect_equal(result, 0)


def nvcc(*options):
    with tempfile.TemporaryDirectory() as folder:
        source, made = os.path.join(folder, "test.cu"), os.path.join(folder, "made")
        with open(source, "w", encoding="utf-8") as file:
            file.write(SOURCE)
        done = subprocess.run(["nvcc", *options, "-o", made, source], capture_output=True, text=True, check=False)
        expect(done.returncode == 0, done.stdout + done.stderr)
        with open(made, "rb") as file:
            return file.read()


class Module:
    """What nvcc made, in the primary context."""

    def __init__(self, image):
        context, self.module = ctypes.c_void_p(), ctypes.c_void_p()
        check(CUDA.cuInit(0))
        check(CUDA.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        check(CUDA.cuCtxSetCurrent(context))
        check(CUDA.cuModuleLoadData(ctypes.byref(self.module), image))

    def launch(self, name, blocks, threads, *arguments):
        function = ctypes.c_void_p()
        check(CUDA.cuModuleGetFunction(ctypes.byref(function), self.module, name.encode()))
        places = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(word) for word in arguments))
        check(CUDA.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, None, places, None))
        check(CUDA.cuCtxSynchronize())

    def launches(self):
        address, size, value = ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_int()
        check(CUDA.cuModuleGetGlobal_v2(ctypes.byref(address), ctypes.byref(size), self.module, b"launches"))
        check(CUDA.cuMemcpyDtoH_v2(ctypes.byref(value), address, ctypes.c_size_t(4)))
        return value.value


def upload(values):
    address = ctypes.c_uint64()
    check(CUDA.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(ctypes.sizeof(values))))
    check(CUDA.cuMemcpyHtoD_v2(address, values, ctypes.c_size_t(ctypes.sizeof(values))))
    return address


def runs(image):
    """The sum of 0 to 9999, three times, and squares of halves and a half."""
    module = Module(image)
    data, out = upload((ctypes.c_float * 10000)(*range(10000))), upload((ctypes.c_float * 1)())
    module.launch("sums", 5, 256, data, out, ctypes.c_int(10000))
    got = ctypes.c_float()
    check(CUDA.cuMemcpyDtoH_v2(ctypes.byref(got), out, ctypes.c_size_t(4)))
    expect(abs(got.value - 3 * 49995000) < 100, got.value)
    expect_equal(module.launches(), 5)
    halves = upload((ctypes.c_uint16 * 4)(0x3C00, 0x4000, 0x4200, 0xC400))  # 1, 2, 3, -4
    module.launch("halves", 1, 2, halves, halves)
    back = (ctypes.c_uint16 * 4)()
    check(CUDA.cuMemcpyDtoH_v2(back, halves, ctypes.c_size_t(8)))
    expect_equal(list(back), [0x3E00, 0x4480, 0x48C0, 0x4C20])  # 1.5, 4.5, 9.5, 16.5
    check(CUDA.cuModuleUnload(module.module))


def test_text_of_nvcc_runs():
    text = nvcc("-arch=sm_90", "-ptx")
    version = re.search(rb"^\.version (\d+)\.(\d+)", text, re.M)
    release = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True).stdout
    of_nvcc = re.search(r"release (\d+)\.(\d+)", release)
    print(f"# nvcc {of_nvcc[1]}.{of_nvcc[2]}, PTX {version[1].decode()}.{version[2].decode()}")
    # 13.0 wrote 9.0, and each release since one more.
    expect_equal((int(version[1]), int(version[2])), (int(of_nvcc[1]) - 4, int(of_nvcc[2])))
    runs(text)


def test_machine_code_of_nvcc_runs():
    runs(nvcc("-arch=sm_90", "-cubin"))


def test_fatbins_of_nvcc_run():
    runs(nvcc("-gencode", "arch=compute_90,code=sm_90", "-fatbin"))
    runs(nvcc("-gencode", "arch=compute_80,code=[sm_80,compute_80]", "-fatbin"))


main(globals())
