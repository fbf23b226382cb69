"""tinygrad's kernels: written in C for NVRTC, and in PTX by itself; matrix cores, graphs, gradients.

kernels_tinygrad.py RENDERER [TEST]...  RENDERER: CUDA (NVRTC) or CUDA:PTX
"""
import os
import sys
import sysconfig
import tempfile

RENDERER = sys.argv.pop(1)
TOOLKIT = os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "cu13")
os.environ.update(DEV=RENDERER, NVRTC_PATH=os.path.join(TOOLKIT, "lib", "libnvrtc.so.13"), CUDA_PATH=TOOLKIT)
# What it compiled before would not be compiled.
FOLDER = tempfile.TemporaryDirectory()
os.environ["CACHEDB"] = os.path.join(FOLDER.name, "cache.db")

import numpy  # noqa: E402
from tinygrad import Context, Device, Tensor, TinyJit, dtypes, nn  # noqa: E402

from tap import expect, expect_equal, main  # noqa: E402

RANDOM = numpy.random.default_rng(5)


def close(tensor, wanted, tolerance=1e-5):
    numpy.testing.assert_allclose(tensor.numpy(), wanted, rtol=tolerance, atol=tolerance)


def same(tensor, wanted):
    numpy.testing.assert_array_equal(tensor.numpy(), wanted)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(numpy.float32)


def integers(*shape, low=-1000, high=1000, dtype=numpy.int32):
    return RANDOM.integers(low, high, shape).astype(dtype)


def test_the_requested_renderer_is_used():
    wanted = {"CUDA": "CUDARenderer", "CUDA:PTX": "PTXRenderer"}[RENDERER]
    expect_equal(type(Device["CUDA"].renderer).__name__, wanted)


def test_integer_arithmetic_of_each_width_agrees_with_numpy():
    for dtype in (numpy.int8, numpy.uint8, numpy.int16, numpy.uint16, numpy.int32, numpy.uint32, numpy.int64, numpy.uint64):
        low = 0 if numpy.dtype(dtype).kind == "u" else -100
        a, b = integers(1000, low=low, high=100, dtype=dtype), integers(1000, low=1, high=100, dtype=dtype)
        with numpy.errstate(over="ignore"):
            same(Tensor(a) * Tensor(b) + Tensor(a), a * b + a)
        same(Tensor(a) // Tensor(b), a // b)
        same(Tensor(a) % Tensor(b), a % b)
        same((Tensor(a) < Tensor(b)).where(Tensor(a), Tensor(b)), numpy.minimum(a, b))


def test_bitwise_operations_agree_with_numpy():
    a, b = integers(999, low=0, high=1 << 31, dtype=numpy.uint32), integers(999, low=0, high=1 << 31, dtype=numpy.uint32)
    same((Tensor(a) ^ Tensor(b)) | (Tensor(a) & Tensor(b)), (a ^ b) | (a & b))
    same(Tensor(a) << 3, a << 3)
    same(Tensor(a) >> 5, a >> 5)


def test_conversions_agree_with_numpy():
    values = (floats(2000) * 30).clip(-127, 127).astype(numpy.float32)
    for dtype, wanted in ((dtypes.int32, numpy.int32), (dtypes.int8, numpy.int8), (dtypes.float64, numpy.float64),
                          (dtypes.half, numpy.float16), (dtypes.bool, numpy.bool_)):
        same(Tensor(values).cast(dtype), values.astype(wanted))


def test_elementary_functions_agree_with_numpy():
    values = floats(4000) * 3
    for name in ("exp", "sin", "cos", "tanh", "sqrt", "log", "sigmoid", "abs"):
        given = numpy.abs(values) + 0.1 if name in ("sqrt", "log") else values
        wanted = 1 / (1 + numpy.exp(-given)) if name == "sigmoid" else getattr(numpy, name)(given)
        close(getattr(Tensor(given), name)(), wanted, 2e-5)


def test_reductions_agree_with_numpy():
    values, counts = floats(129, 257), integers(129, 257)
    close(Tensor(values).sum(), values.sum(dtype=numpy.float64), 1e-3)
    close(Tensor(values).mean(axis=0), values.mean(axis=0))
    same(Tensor(counts).sum(axis=1), counts.sum(axis=1))
    same(Tensor(counts).max(axis=0), counts.max(axis=0))
    same(Tensor(counts).argmax(axis=1), counts.argmax(axis=1))
    same(Tensor(counts).cumsum(axis=1), counts.cumsum(axis=1))


def test_matrix_multiplication_agrees_with_numpy():
    a, b = floats(65, 130), floats(130, 97)
    close(Tensor(a) @ Tensor(b), a @ b, 1e-4)
    a, b = integers(64, 64), integers(64, 64)
    same(Tensor(a) @ Tensor(b), a @ b)


def test_tensor_core_multiplication_is_exact_for_small_integers():
    """Of small whole numbers, which the halves hold exactly."""
    for kind in (dtypes.half, dtypes.bfloat16):
        a, b = integers(64, 96, low=-8, high=8), integers(96, 128, low=-8, high=8)
        with Context(TC=1, TC_OPT=2):
            left, right = Tensor(a).cast(kind).realize(), Tensor(b).cast(kind).realize()
            same(left.dot(right, dtype=dtypes.float), (a @ b).astype(numpy.float32))


def test_convolution_agrees_with_numpy():
    values, weights = integers(2, 3, 17, 19, low=-9, high=9), integers(4, 3, 3, 3, low=-9, high=9)
    padded = numpy.pad(values, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = numpy.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    wanted = numpy.einsum("ncyxij,ocij->noyx", windows, weights)
    same(Tensor(values.astype(numpy.float32)).conv2d(Tensor(weights.astype(numpy.float32)), padding=1),
         wanted.astype(numpy.float32))


def test_gathers_and_sorts_agree_with_numpy():
    table, rows = floats(50, 8), integers(200, low=0, high=50)
    same(Tensor(table)[Tensor(rows)], table[rows])
    values = integers(300)
    ordered, places = Tensor(values).sort()
    same(ordered, numpy.sort(values))
    same(Tensor(values[places.numpy()]), numpy.sort(values))


def test_softmax_and_layer_normalization_agree_with_numpy():
    values = floats(33, 65)
    exponentials = numpy.exp(values - values.max(axis=1, keepdims=True))
    close(Tensor(values).softmax(), exponentials / exponentials.sum(axis=1, keepdims=True))
    wanted = (values - values.mean(axis=1, keepdims=True)) / numpy.sqrt(values.var(axis=1, keepdims=True) + 1e-5)
    close(Tensor(values).layernorm(), wanted, 1e-4)


def test_a_seed_repeats_random_numbers():
    Tensor.manual_seed(7)
    first = Tensor.rand(1000).numpy()
    Tensor.manual_seed(7)
    same(Tensor.rand(1000), first)
    expect(0.45 < first.mean() < 0.55 and len(set(first)) > 990, "they are not random")


def test_a_compiled_function_runs_as_a_graph():
    """From the third call on one launch of a graph, whose parameters are updated."""
    @TinyJit
    def step(a, b):
        return ((a @ b).relu().sum(axis=0) * 2).contiguous().realize()
    for _ in range(6):
        a, b = (integers(32, 32, low=-9, high=9).astype(numpy.float32) for _ in range(2))
        same(step(Tensor(a).realize(), Tensor(b).realize()), numpy.maximum(a @ b, 0).sum(axis=0) * 2)


def test_training_steps_agree_with_numpy():
    """A line is learned: gradients and an optimizer's updates, the same as numpy's in each step."""
    inputs, slopes = floats(256, 4), floats(4, 1)
    outputs = inputs @ slopes
    weights = Tensor.zeros(4, 1).contiguous()
    optimizer, ours = nn.optim.SGD([weights], lr=0.1), numpy.zeros((4, 1), numpy.float32)
    with Context(TRAINING=1):
        for _ in range(30):
            loss = (Tensor(inputs) @ weights - Tensor(outputs)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ours -= 0.1 * 2 * inputs.T @ (inputs @ ours - outputs) / 256
    close(weights, ours, 1e-4)
    close(weights, slopes, 0.05)


if __name__ == "__main__":
    main(globals())
