"""Halide's kernels: its schedules become PTX by the LLVM that it brings, which its runtime loads by the driver API."""
import halide as hl
import numpy

from tap import expect, main

RANDOM = numpy.random.default_rng(3)
TARGET = hl.Target("host-cuda-cuda_capability_80-strict_float")
X, Y, XO, YO, XI, YI = (hl.Var(name) for name in ("x", "y", "xo", "yo", "xi", "yi"))


def run(function, result):
    """The array `result`, filled by the device."""
    buffer = hl.Buffer(result)
    function.realize(buffer, TARGET)
    buffer.copy_to_host()
    return result


def tiled(function, size=8):
    return function.gpu_tile(X, Y, XO, YO, XI, YI, size, size, hl.TailStrategy.GuardWithIf)


def numbers(*shape, low=0, high=256, dtype=numpy.uint8):
    return RANDOM.integers(low, high, shape).astype(dtype)


def test_a_pointwise_operation_is_correct():
    image = numbers(45, 67)
    brighter = hl.Func("brighter")
    brighter[X, Y] = hl.u8(hl.min(hl.f32(hl.Buffer(image)[X, Y]) * 1.5, 255))
    tiled(brighter)
    numpy.testing.assert_array_equal(run(brighter, numpy.empty_like(image)),
                                     numpy.minimum(image.astype(numpy.float32) * 1.5, 255).astype(numpy.uint8))


def test_integer_arithmetic_of_each_width_agrees_with_numpy():
    for dtype in (numpy.int8, numpy.uint8, numpy.int16, numpy.uint16, numpy.int32, numpy.uint32, numpy.int64):
        a, b = numbers(20, 30, high=100, dtype=dtype), numbers(20, 30, low=1, high=100, dtype=dtype)
        function = hl.Func("arithmetic")
        left, right = hl.Buffer(a)[X, Y], hl.Buffer(b)[X, Y]
        function[X, Y] = left / right + left % right - (left ^ right)
        tiled(function)
        numpy.testing.assert_array_equal(run(function, numpy.empty_like(a)), a // b + a % b - (a ^ b))


def test_a_blur_uses_shared_memory():
    """Each block blurs the rows that it needs into shared memory, then the columns."""
    image = numbers(64 + 2, 64 + 2, dtype=numpy.uint16)
    rows, columns = hl.Func("rows"), hl.Func("columns")
    source = hl.Buffer(image)
    rows[X, Y] = (source[X, Y] + source[X + 1, Y] + source[X + 2, Y]) / 3
    columns[X, Y] = (rows[X, Y] + rows[X, Y + 1] + rows[X, Y + 2]) / 3
    tiled(columns, 16)
    rows.compute_at(columns, XO).gpu_threads(X, Y)
    whole = image.astype(numpy.uint32)
    wide = (whole[:, :-2] + whole[:, 1:-1] + whole[:, 2:]) // 3
    numpy.testing.assert_array_equal(run(columns, numpy.empty((64, 64), numpy.uint16)),
                                     (wide[:-2] + wide[1:-1] + wide[2:]) // 3)


def test_a_histogram_uses_atomics():
    image = numbers(64, 64)
    bins, where = hl.Func("bins"), hl.RDom([(0, 64), (0, 64)])
    bins[X] = hl.u32(0)
    bins[hl.i32(hl.Buffer(image)[where.x, where.y])] += hl.u32(1)
    bins.gpu_tile(X, XO, XI, 32)
    bins.update().atomic().gpu_blocks(where.y).gpu_threads(where.x)
    numpy.testing.assert_array_equal(run(bins, numpy.empty(256, numpy.uint32)), numpy.bincount(image.ravel(), minlength=256))


def test_matrix_multiplication_agrees_with_numpy():
    a, b = (numbers(48, 48, low=-9, high=9, dtype=numpy.int32).astype(numpy.float32) for _ in range(2))
    product, inner = hl.Func("product"), hl.RDom([(0, 48)])
    product[X, Y] = 0.0
    product[X, Y] += hl.Buffer(a)[inner.x, Y] * hl.Buffer(b)[X, inner.x]
    tiled(product)
    product.update().gpu_tile(X, Y, XO, YO, XI, YI, 8, 8)
    numpy.testing.assert_array_equal(run(product, numpy.empty((48, 48), numpy.float32)), a @ b)


def test_lanes_exchange_values_by_shuffles():
    """What a warp keeps in registers its lanes read from each other: shuffles."""
    image = numbers(16, 120 + 2, dtype=numpy.int32)
    doubled, sums = hl.Func("doubled"), hl.Func("sums")
    source = hl.Buffer(image)
    doubled[X, Y] = source[X, Y] * 2
    sums[X, Y] = doubled[X, Y] + doubled[X + 2, Y]
    sums.tile(X, Y, XO, YO, XI, YI, 30, 4, hl.TailStrategy.RoundUp)
    sums.gpu_blocks(XO, YO).gpu_threads(YI).gpu_lanes(XI)
    doubled.compute_at(sums, YI).store_in(hl.MemoryType.Register).gpu_lanes(X)
    numpy.testing.assert_array_equal(run(sums, numpy.empty((16, 120), numpy.int32)), (image[:, :-2] + image[:, 2:]) * 2)


def test_elementary_functions_agree_with_numpy():
    values = RANDOM.uniform(0.1, 3, (32, 32)).astype(numpy.float32)
    source = hl.Buffer(values)
    for name in ("sqrt", "sin", "cos", "exp", "log", "floor"):
        function = hl.Func(name)
        function[X, Y] = getattr(hl, name)(source[X, Y])
        tiled(function)
        numpy.testing.assert_allclose(run(function, numpy.empty_like(values)), getattr(numpy, name)(values), rtol=1e-5, atol=1e-6)


def test_intermediate_stages_are_computed_on_the_device():
    image = numbers(40, 40, dtype=numpy.int32)
    stages = [hl.Func(f"stage{i}") for i in range(5)]
    stages[0][X, Y] = hl.Buffer(image)[X, Y]
    for before, stage in zip(stages, stages[1:]):
        stage[X, Y] = before[X, Y] * 3 + 1
    for stage in stages:
        stage.compute_root()
        tiled(stage)
    wanted = image
    for _ in range(4):
        wanted = wanted * 3 + 1
    numpy.testing.assert_array_equal(run(stages[-1], numpy.empty_like(image)), wanted)


def test_the_target_is_cuda():
    expect(TARGET.has_feature(hl.TargetFeature.CUDA), str(TARGET))


if __name__ == "__main__":
    main(globals())
