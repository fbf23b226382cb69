"""SlangPy's kernels: Slang that its compiler makes C of, for NVRTC; shared memory, atomics, textures, gradients."""
import os
import shutil
import sys
import sysconfig
import tempfile

TOOLKIT = os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "cu13")
FOLDER = os.environ.get("SLANG_CLIENT_FOLDER")
if not FOLDER:
    # It looks for libnvrtc.so, a name that the wheel does not have, where the dynamic linker does.
    FOLDER = tempfile.mkdtemp()
    os.symlink(os.path.join(TOOLKIT, "lib", "libnvrtc.so.13"), os.path.join(FOLDER, "libnvrtc.so"))
    path = [FOLDER, os.path.join(TOOLKIT, "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
    os.environ.update(SLANG_CLIENT_FOLDER=FOLDER, LD_LIBRARY_PATH=":".join(path), CUDA_PATH=TOOLKIT)
    os.execv(sys.executable, [sys.executable, *sys.argv])

import numpy  # noqa: E402
import slangpy  # noqa: E402

from tap import expect, main  # noqa: E402

RANDOM = numpy.random.default_rng(23)

FUNCTIONS = """
[Differentiable] float waves(float x, float y) { return x * y + sin(x); }
int whole(int a, int b) { return (a << 3) / max(b, 1) ^ a % 7; }
float3 turned(float3 v, float a) { float c = cos(a), s = sin(a); return float3(c * v.x - s * v.y, s * v.x + c * v.y, v.z); }
float3 through(float3x3 m, float3 v) { return mul(m, v); }
double wide(double a, double b) { return a / b - floor(a); }
uint divisor(uint a, uint b) { while (b != 0) { uint rest = a % b; a = b; b = rest; } return a; }
interface IShape { float area(); }
struct Square : IShape { float side; float area() { return side * side; } }
struct Circle : IShape { float radius; float area() { return 3 * radius * radius; } }
float of_shape<T : IShape>(T shape) { return shape.area(); }
float areas(float a) { Square s = { a }; Circle c = { a }; return of_shape(s) + of_shape(c); }
float half_of(float a) { half h = half(a); return float(h * h); }
uint64_t product(uint64_t a, uint64_t b) { return a * b; }
"""

KERNELS = """
StructuredBuffer<uint> from; RWStructuredBuffer<uint> to; uniform uint count;
groupshared uint part[256];

[shader("compute")] [numthreads(256, 1, 1)]
void sums(uint3 id : SV_DispatchThreadID, uint3 local : SV_GroupThreadID, uint3 group : SV_GroupID)
{
    part[local.x] = id.x < count ? from[id.x] : 0;
    GroupMemoryBarrierWithGroupSync();
    for (uint s = 128; s > 0; s >>= 1) {
        if (local.x < s) part[local.x] += part[local.x + s];
        GroupMemoryBarrierWithGroupSync();
    }
    if (local.x == 0) { to[group.x + 1] = part[0]; InterlockedAdd(to[0], part[0]); }
}

[shader("compute")] [numthreads(64, 1, 1)]
void bins(uint3 id : SV_DispatchThreadID)
{
    if (id.x < count) InterlockedAdd(to[from[id.x] % 16], 1);
}

[shader("compute")] [numthreads(64, 1, 1)]
void waves(uint3 id : SV_DispatchThreadID)
{
    uint sum = WaveActiveSum(id.x), before = WavePrefixSum(1u), greatest = WaveActiveMax(from[id.x]);
    bool any = WaveActiveAnyTrue(from[id.x] == 5);
    to[id.x] = sum + before * 100000 + (any ? 1u << 31 : 0) + WaveReadLaneAt(greatest, 3) % 7 * 10000000;
}
"""

IMAGES = """
Texture2D<float4> image; SamplerState sampler; RWStructuredBuffer<float4> to; uniform uint2 size;
RWTexture2D<float4> drawn;

[shader("compute")] [numthreads(8, 8, 1)]
void sampled(uint3 id : SV_DispatchThreadID)
{
    if (all(id.xy < size))
        to[id.y * size.x + id.x] = image.SampleLevel(sampler, (float2(id.xy) + 0.5) / float2(size), 0);
}

[shader("compute")] [numthreads(8, 8, 1)]
void draws(uint3 id : SV_DispatchThreadID)
{
    if (all(id.xy < size)) drawn[id.xy] = float4(id.x, id.y, id.x * id.y, 1);
}
"""

BOTH = slangpy.BufferUsage.shader_resource | slangpy.BufferUsage.unordered_access


def write(name, text):
    path = os.path.join(FOLDER, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return name


def open_device():
    # What it compiled before would not be compiled.
    device = slangpy.create_device(slangpy.DeviceType.cuda, include_paths=[FOLDER])
    return device, slangpy.Module.load_from_file(device, write("functions.slang", FUNCTIONS))


DEVICE, MODULE = open_device()


def close(got, wanted, tolerance=1e-6):
    numpy.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


def same(got, wanted):
    numpy.testing.assert_array_equal(got, wanted)


def floats(*shape):
    return RANDOM.uniform(-3, 3, shape).astype(numpy.float32)


def call(name, *arguments):
    return getattr(MODULE, name)(*arguments, _result="numpy")


def buffer(data=None, words=0):
    more = {"size": 4 * words} if data is None else {"data": data}
    return DEVICE.create_buffer(struct_size=4, usage=BOTH, **more)


def dispatch(text, entry, threads, **variables):
    name = write(f"kernel_{entry}.slang", text)
    DEVICE.create_compute_kernel(DEVICE.load_program(name, [entry])).dispatch(thread_count=threads, vars=variables)


def words_of(made):
    return made.to_numpy().view(numpy.uint32)


def test_float_arithmetic_agrees_with_numpy():
    x, y = floats(5000), floats(5000)
    close(call("waves", x, y), x * y + numpy.sin(x))


def test_integer_arithmetic_agrees_with_numpy():
    a, b = RANDOM.integers(0, 1 << 20, 3000).astype(numpy.int32), RANDOM.integers(1, 99, 3000).astype(numpy.int32)
    same(call("whole", a, b), (a << 3) // b ^ a % 7)


def test_arithmetic_of_64_bit_numbers_agrees_with_numpy():
    a, b = floats(1000).astype(numpy.float64), floats(1000).astype(numpy.float64) + 10
    same(call("wide", a, b), a / b - numpy.floor(a))
    a, b = (RANDOM.integers(0, 1 << 62, 1000).astype(numpy.uint64) for _ in range(2))
    same(call("product", a, b), a * b)


def test_vectors_and_matrices_agree_with_numpy():
    v, angle = floats(700, 3), floats(700)
    c, s = numpy.cos(angle), numpy.sin(angle)
    close(call("turned", v, angle), numpy.stack([c * v[:, 0] - s * v[:, 1], s * v[:, 0] + c * v[:, 1], v[:, 2]], 1), 1e-5)
    matrix = floats(3, 3)
    close(call("through", slangpy.float3x3(matrix), v), v @ matrix.T, 1e-5)


def test_loops_of_different_lengths_are_correct():
    a, b = (RANDOM.integers(0, 1 << 16, 3000).astype(numpy.uint32) * 12 for _ in range(2))
    same(call("divisor", a, b), numpy.gcd(a, b))


def test_generic_functions_are_correct():
    a = floats(300)
    close(call("areas", a), 4 * a * a)


def test_half_precision_agrees_with_numpy():
    a = floats(1000)
    same(call("half_of", a), (a.astype(numpy.float16) * a.astype(numpy.float16)).astype(numpy.float32))


def test_gradients_are_correct():
    x, y = floats(2000), floats(2000)
    a, b = (slangpy.Tensor.from_numpy(DEVICE, data).with_grads(zero=True) for data in (x, y))
    result = MODULE.waves(a, b, _result="tensor").with_grads()
    result.grad.copy_from_numpy(numpy.ones(2000, numpy.float32))
    MODULE.waves.bwds(a, b, _result=result)
    close(a.grad.to_numpy(), y + numpy.cos(x))
    same(b.grad.to_numpy(), x)


def test_block_sums_use_shared_memory_and_atomics():
    data = RANDOM.integers(0, 1 << 16, 5000).astype(numpy.uint32)
    groups = (len(data) + 255) // 256
    to = buffer(numpy.zeros(groups + 1, numpy.uint32))
    dispatch(KERNELS, "sums", [256 * groups, 1, 1], **{"from": buffer(data), "to": to, "count": len(data)})
    parts = numpy.add.reduceat(data, numpy.arange(0, len(data), 256))
    same(words_of(to), [data.sum(), *parts])


def test_a_histogram_agrees_with_numpy():
    data = RANDOM.integers(0, 1 << 30, 10000).astype(numpy.uint32)
    to = buffer(numpy.zeros(16, numpy.uint32))
    dispatch(KERNELS, "bins", [len(data), 1, 1], **{"from": buffer(data), "to": to, "count": len(data)})
    same(words_of(to), numpy.bincount(data % 16, minlength=16))


def test_wave_operations_are_correct():
    data = RANDOM.integers(0, 20, 256).astype(numpy.uint32)
    to = buffer(words=256)
    dispatch(KERNELS, "waves", [256, 1, 1], **{"from": buffer(data), "to": to, "count": len(data)})
    ids = numpy.arange(256).reshape(8, 32)
    warps = data.reshape(8, 32)
    wanted = (ids.sum(axis=1, keepdims=True) + ids % 32 * 100000 + (warps == 5).any(axis=1, keepdims=True) * (1 << 31) +
              warps.max(axis=1, keepdims=True) % 7 * 10000000)
    same(words_of(to), wanted.ravel() % (1 << 32))


def texture(data, usage):
    height, width = data.shape[:2]
    return DEVICE.create_texture(width=width, height=height, format=slangpy.Format.rgba32_float, usage=usage, data=data)


def test_textures_are_read_and_written():
    image = floats(12, 16, 4)
    usage = slangpy.TextureUsage.shader_resource | slangpy.TextureUsage.unordered_access
    to = DEVICE.create_buffer(struct_size=16, size=image.nbytes, usage=BOTH)
    made, drawn = texture(image, usage), texture(numpy.zeros((12, 16, 4), numpy.float32), usage)
    more = {"image": made, "sampler": DEVICE.create_sampler(), "to": to, "size": slangpy.uint2(16, 12), "drawn": drawn}
    dispatch(IMAGES, "sampled", [16, 12, 1], **more)
    close(to.to_numpy().view(numpy.float32).reshape(image.shape), image)
    dispatch(IMAGES, "draws", [16, 12, 1], **more)
    y, x = numpy.mgrid[0:12, 0:16].astype(numpy.float32)
    same(drawn.to_numpy(), numpy.stack([x, y, x * y, numpy.ones_like(x)], axis=2))


def test_the_adapter_is_the_simulated_device():
    expect("H200" in DEVICE.info.adapter_name, DEVICE.info.adapter_name)


if __name__ == "__main__":
    try:
        main(globals())
    finally:
        DEVICE.close()
        shutil.rmtree(FOLDER)
