"""Taichi's kernels: Python functions that it compiles to PTX by the LLVM that it brings, over its own runtime on the
device (allocators, sparse fields), which the driver API loads."""
import os

os.environ.update(TI_LOG_LEVEL="error", ENABLE_TAICHI_HEADER_PRINT="0")

import numpy  # noqa: E402
import taichi as ti  # noqa: E402

from tap import expect_equal, main  # noqa: E402

ti.init(arch=ti.cuda, offline_cache=False, device_memory_GB=0.3, random_seed=3)
RANDOM = numpy.random.default_rng(2)


def test_taichi_runs_on_the_device():
    expect_equal(ti.lang.impl.current_cfg().arch, ti.cuda)


def test_an_elementwise_kernel_is_correct():
    @ti.kernel
    def scaled(values: ti.types.ndarray(), factor: float):
        for i in range(values.shape[0]):
            values[i] = values[i] * factor + 1
    values = RANDOM.standard_normal(3000).astype(numpy.float32)
    wanted = values * numpy.float32(2.5) + 1
    scaled(values, 2.5)
    numpy.testing.assert_allclose(values, wanted, rtol=1e-6, atol=1e-6)


def test_integer_arithmetic_agrees_with_numpy():
    @ti.kernel
    def mixed(a: ti.types.ndarray(), b: ti.types.ndarray(), out: ti.types.ndarray()):
        for i in range(a.shape[0]):
            out[i] = (a[i] // b[i]) * 7 + a[i] % b[i] - ((a[i] ^ b[i]) << 2)
    a, b = RANDOM.integers(-1000, 1000, 999).astype(numpy.int32), RANDOM.integers(1, 50, 999).astype(numpy.int32)
    out = numpy.zeros_like(a)
    mixed(a, b, out)
    numpy.testing.assert_array_equal(out, a // b * 7 + a % b - ((a ^ b) << 2))


def test_atomic_sums_and_maxima_agree_with_numpy():
    total, most = ti.field(ti.i32, ()), ti.field(ti.i32, ())

    @ti.kernel
    def add(values: ti.types.ndarray()):
        for i in range(values.shape[0]):
            total[None] += values[i]
            ti.atomic_max(most[None], values[i])
    values = RANDOM.integers(0, 1000, 20000).astype(numpy.int32)
    add(values)
    expect_equal((total[None], most[None]), (int(values.sum()), int(values.max())))


def test_matrix_multiplication_agrees_with_numpy():
    a, b, c = (ti.field(ti.f32, (40, 40)) for _ in range(3))

    @ti.kernel
    def multiply():
        for i, j in c:
            for k in range(40):
                c[i, j] += a[i, k] * b[k, j]
    left, right = (RANDOM.integers(-9, 9, (40, 40)).astype(numpy.float32) for _ in range(2))
    a.from_numpy(left)
    b.from_numpy(right)
    multiply()
    numpy.testing.assert_array_equal(c.to_numpy(), left @ right)


def test_vectors_and_structures_agree_with_numpy():
    body = ti.types.struct(place=ti.math.vec3, speed=ti.math.vec3)
    bodies = body.field(shape=(200,))

    @ti.kernel
    def move(step: float):
        for i in bodies:
            bodies[i].place += bodies[i].speed * step
    places, speeds = (RANDOM.standard_normal((200, 3)).astype(numpy.float32) for _ in range(2))
    bodies.place.from_numpy(places)
    bodies.speed.from_numpy(speeds)
    move(0.5)
    numpy.testing.assert_allclose(bodies.place.to_numpy(), places + speeds / 2, rtol=1e-6, atol=1e-6)


def test_loops_of_different_lengths_are_correct():
    steps = ti.field(ti.i32, (500,))

    @ti.kernel
    def collatz():
        for i in steps:
            number, count = i + 1, 0
            while number != 1:
                number = number // 2 if number % 2 == 0 else 3 * number + 1
                count += 1
            steps[i] = count

    def wanted(number):
        count = 0
        while number != 1:
            number, count = number // 2 if number % 2 == 0 else 3 * number + 1, count + 1
        return count
    collatz()
    expect_equal(steps.to_numpy().tolist(), [wanted(i + 1) for i in range(500)])


def test_sparse_fields_allocate_memory_on_the_device():
    """Memory is allocated on the device when a cell is first written."""
    cells = ti.field(ti.i32)
    ti.root.pointer(ti.i, 64).dense(ti.i, 16).place(cells)
    count = ti.field(ti.i32, ())

    @ti.kernel
    def fill():
        for i in range(10):
            cells[i * 100] = i

    @ti.kernel
    def visit():
        for i in cells:
            count[None] += 1
    fill()
    visit()
    expect_equal(count[None], 10 * 16)
    expect_equal([cells[i * 100] for i in range(10)], list(range(10)))


def test_elementary_functions_agree_with_numpy():
    @ti.kernel
    def each(values: ti.types.ndarray(), out: ti.types.ndarray()):
        for i in range(values.shape[0]):
            x = values[i]
            out[i, 0], out[i, 1], out[i, 2] = ti.sin(x), ti.exp(x), ti.tanh(x)
            out[i, 3], out[i, 4], out[i, 5] = ti.sqrt(abs(x)), ti.log(abs(x) + 1), ti.atan2(x, 0.5)
    values = RANDOM.uniform(-3, 3, 500).astype(numpy.float32)
    out, exact = numpy.zeros((500, 6), numpy.float32), values.astype(float)
    each(values, out)
    wanted = [numpy.sin(exact), numpy.exp(exact), numpy.tanh(exact), numpy.sqrt(abs(exact)), numpy.log(abs(exact) + 1),
              numpy.arctan2(exact, 0.5)]
    numpy.testing.assert_allclose(out, numpy.stack(wanted, axis=1), rtol=2e-5, atol=1e-6)


def test_random_numbers_are_uniformly_distributed():
    values = ti.field(ti.f32, (5000,))

    @ti.kernel
    def draw():
        for i in values:
            values[i] = ti.random()
    draw()
    drawn = values.to_numpy()
    expect_equal((bool((0 <= drawn).all()), bool((drawn < 1).all())), (True, True))
    numpy.testing.assert_allclose([drawn.mean(), drawn.std()], [0.5, 1 / 12 ** 0.5], atol=0.02)


def test_double_precision_agrees_with_numpy():
    @ti.kernel
    def series(out: ti.types.ndarray()):
        for i in range(out.shape[0]):
            total = ti.cast(0.0, ti.f64)
            for k in range(20):
                total += 1 / ti.cast((i + k) ** 2 + 1, ti.f64)
            out[i] = total
    out = numpy.zeros(100)
    series(out)
    wanted = [sum(1 / ((i + k) ** 2 + 1) for k in range(20)) for i in range(100)]
    numpy.testing.assert_allclose(out, wanted, rtol=1e-14)


def test_blocks_reverse_elements_in_shared_memory():
    """Each block turns its part round in shared memory."""
    block = 64
    values = ti.field(ti.i32, (block * 8,))

    @ti.kernel
    def turn():
        ti.loop_config(block_dim=block)
        for i in range(block * 8):
            part = ti.simt.block.SharedArray((block,), ti.i32)
            lane = i % block
            part[lane] = i
            ti.simt.block.sync()
            values[i] = part[block - 1 - lane]
    turn()
    numpy.testing.assert_array_equal(values.to_numpy(), numpy.arange(block * 8).reshape(8, block)[:, ::-1].ravel())


if __name__ == "__main__":
    main(globals())
