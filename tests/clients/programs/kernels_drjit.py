"""Dr.Jit's kernels: traced arithmetic that it writes as PTX itself, and those it brings as PTX (reductions, sorts)."""
import os
import tempfile

FOLDER = tempfile.TemporaryDirectory()
os.environ["DRJIT_CACHE_DIR"] = FOLDER.name  # else one in the user's home

import drjit as dr  # noqa: E402
import numpy  # noqa: E402
from drjit.cuda import PCG32, Bool, Float, Float16, Float64, Int, Texture2f, TensorXf, UInt, UInt64  # noqa: E402
from drjit.cuda import ad  # noqa: E402

from tap import expect, expect_equal, main  # noqa: E402

RANDOM = numpy.random.default_rng(11)


def close(got, wanted, tolerance=1e-6):
    numpy.testing.assert_allclose(numpy.array(got), wanted, rtol=tolerance, atol=tolerance)


def same(got, wanted):
    numpy.testing.assert_array_equal(numpy.array(got), wanted)


def floats(count, low=-3.0, high=3.0):
    return RANDOM.uniform(low, high, count).astype(numpy.float32)


def words(count):
    return RANDOM.integers(0, 1 << 32, count, dtype=numpy.uint32)


def test_integer_arithmetic_agrees_with_numpy():
    a, b = words(1000), words(1000) | 1
    same(UInt(a) * UInt(b) + UInt(a), a * b + a)
    same(UInt(a) // UInt(b), a // b)
    same(UInt(a) % UInt(b), a % b)
    same((UInt(a) ^ UInt(b)) & ~UInt(a), (a ^ b) & ~a)
    same(dr.mul_hi(UInt(a), UInt(b)), (a.astype(numpy.uint64) * b >> numpy.uint64(32)).astype(numpy.uint32))
    same(Int(a.view(numpy.int32)) >> 3, a.view(numpy.int32) >> 3)


def test_bit_counting_is_correct():
    a = words(1000)
    texts = [f"{value:032b}" for value in a]
    same(dr.popcnt(UInt(a)), [text.count("1") for text in texts])
    same(dr.lzcnt(UInt(a)), [len(text) - len(text.lstrip("0")) for text in texts])
    same(dr.tzcnt(UInt(a)), [len(text) - len(text.rstrip("0")) for text in texts])
    same(dr.brev(UInt(a)), [int(text[::-1], 2) for text in texts])


def test_float_arithmetic_of_each_width_agrees_with_numpy():
    a, b = floats(1000), floats(1000)
    same(Float(a) + Float(b), a + b)
    same(Float(a) * Float(b), a * b)
    same(dr.sqrt(Float(abs(a))), numpy.sqrt(abs(a)))
    same(Float64(a.astype(numpy.float64)) / Float64(b.astype(numpy.float64)), a.astype(numpy.float64) / b)
    same(Float16(a.astype(numpy.float16)) * Float16(b.astype(numpy.float16)), a.astype(numpy.float16) * b.astype(numpy.float16))
    same(dr.fma(Float64(a.astype(numpy.float64)), 3.0, 1.0), a.astype(numpy.float64) * 3 + 1)


def test_conversions_agree_with_numpy():
    a = floats(1000, -1e4, 1e4)
    same(Int(Float(a)), a.astype(numpy.int32))
    same(Float16(Float(a)), a.astype(numpy.float16))
    same(Float(Int(a.astype(numpy.int32))), a.astype(numpy.int32).astype(numpy.float32))
    same(dr.floor(Float(a)), numpy.floor(a))
    same(dr.round(Float(a)), numpy.rint(a))


def test_elementary_functions_agree_with_numpy():
    a = floats(2000)
    for name in ("sin", "cos", "exp", "tan", "sinh", "tanh", "atan"):
        close(getattr(dr, name)(Float(a)), getattr(numpy, "arctan" if name == "atan" else name)(a.astype(numpy.float64)), 2e-5)
    close(dr.log(Float(abs(a) + 0.1)), numpy.log(abs(a) + 0.1), 2e-6)
    close(dr.power(Float(abs(a) + 0.1), 1.7), (abs(a.astype(numpy.float64)) + 0.1) ** 1.7, 1e-5)


def test_reductions_of_several_sizes_agree_with_numpy():
    """Of 33 to 64 values, of the array or of partial results, its kernels read shared memory that they have not, which
    softgpu reports: these sizes have none."""
    for count in (1, 31, 1000, 30000):
        a, b = floats(count), words(count) >> 8
        close(dr.sum(Float(a)), [a.sum(dtype=numpy.float64)], 1e-3)
        same(dr.sum(UInt(b)), [b.sum(dtype=numpy.uint32)])
        same(dr.max(Float(a)), [a.max()])
        same(dr.min(UInt(b)), [b.min()])
        close(dr.dot(Float(a), Float(a)), [numpy.dot(a.astype(float), a.astype(float))], 1e-5)
        same(dr.any(Float(a) > a.max() - 1e-6), [True])
        same(dr.count(UInt(b) > 1 << 23), [(b > 1 << 23).sum()])


def test_prefix_sums_agree_with_numpy():
    for count in (33, 4096, 100003):
        a = words(count) >> 16
        same(dr.prefix_sum(UInt(a)), numpy.concatenate(([0], numpy.cumsum(a)[:-1])).astype(numpy.uint32))
        same(dr.cumsum(UInt(a)), numpy.cumsum(a).astype(numpy.uint32))
        same(dr.compress(UInt(a) % 3 == 0), numpy.flatnonzero(a % 3 == 0))


def test_block_sums_agree_with_numpy():
    a = words(4096) >> 12
    for size in (4, 64, 512):
        same(dr.block_sum(UInt(a), size), a.reshape(-1, size).sum(axis=1).astype(numpy.uint32))


def test_gathers_and_scatters_agree_with_numpy():
    table, places = floats(300), RANDOM.integers(0, 300, 5000).astype(numpy.uint32)
    same(dr.gather(Float, Float(table), UInt(places)), table[places])
    target = dr.zeros(UInt, 300)
    dr.scatter_add(target, UInt(places), UInt(places))
    wanted = numpy.zeros(300, numpy.uint32)
    numpy.add.at(wanted, places, places)
    same(target, wanted)
    target = dr.zeros(Float, 300)
    dr.scatter_reduce(dr.ReduceOp.Max, target, Float(places) * 0.5, UInt(places) % 7)
    same(target, [max((place * 0.5 for place in places if place % 7 == i), default=0) for i in range(300)])


def test_each_atomic_increment_returns_a_unique_number():
    counters, places = dr.zeros(UInt, 5), words(3000) % 5
    numbers = numpy.array(dr.scatter_inc(counters, UInt(places)))
    same(counters, numpy.bincount(places, minlength=5))
    for place in range(5):
        same(numpy.sort(numbers[places == place]), numpy.arange((places == place).sum()))


@dr.syntax
def steps_of_collatz(number):
    steps = dr.zeros(UInt, dr.width(number))
    while number != 1:
        if number % 2 == 0:
            number //= 2
        else:
            number = 3 * number + 1
        steps += 1
    return steps


def test_loops_with_branches_are_correct():
    def steps(number):
        count = 0
        while number != 1:
            number, count = number // 2 if number % 2 == 0 else 3 * number + 1, count + 1
        return count
    same(steps_of_collatz(dr.arange(UInt, 1, 2000)), [steps(number) for number in range(1, 2000)])


def test_random_numbers_follow_the_pcg32_definition():
    """PCG32, with a stream for each lane, as its definition says."""
    states, streams, mask = words(100).astype(numpy.uint64), words(100).astype(numpy.uint64), (1 << 64) - 1
    generator = PCG32(size=1, initstate=UInt64(states), initseq=UInt64(streams))
    drawn = numpy.array([generator.next_uint32(), generator.next_uint32()])

    def draw(start, stream):
        step = 2 * stream + 1 & mask
        state = (step + start) * 0x5851f42d4c957f2d + step & mask
        for _ in range(2):
            old, state = state, state * 0x5851f42d4c957f2d + step & mask
            word, turn = (old >> 18 ^ old) >> 27 & 0xffffffff, old >> 59
            yield (word >> turn | word << (-turn & 31)) & 0xffffffff
    same(drawn.T, [list(draw(int(start), int(stream))) for start, stream in zip(states, streams)])


def test_arithmetic_of_64_bit_integers_agrees_with_numpy():
    a, b = words(1000).astype(numpy.uint64) << numpy.uint64(20) | words(1000), words(1000).astype(numpy.uint64) | numpy.uint64(1)
    same(UInt64(a) * UInt64(b), a * b)
    same(UInt64(a) // UInt64(b), a // b)


def test_gradients_agree_with_numpy():
    a = floats(500)
    x = ad.Float(a)
    dr.enable_grad(x)
    dr.backward(dr.sum(dr.sin(x) * x))
    close(dr.grad(x), numpy.cos(a.astype(float)) * a + numpy.sin(a.astype(float)), 1e-5)


def test_texture_lookups_agree_with_computed_ones():
    """By the texture unit, whose weights have 8 bits, and computed: they agree to such a weight."""
    image = floats(16 * 12 * 2, 0, 1).reshape(12, 16, 2)
    u, v = floats(2000, -0.2, 1.2), floats(2000, -0.2, 1.2)
    for wrap in (dr.WrapMode.Clamp, dr.WrapMode.Repeat, dr.WrapMode.Mirror):
        answers = []
        for accelerated in (True, False):
            texture = Texture2f(TensorXf(image), accelerated, wrap_mode=wrap)
            answers.append(numpy.array([texture.eval([Float(u), Float(v)])[i] for i in range(2)]))
        error = abs(answers[0] - answers[1]).max()
        expect(error < 2 / 256 + 1e-6, f"{wrap}: they differ by {error}")


def test_a_traced_expression_becomes_one_kernel():
    with dr.scoped_set_flag(dr.JitFlag.KernelHistory):
        dr.kernel_history_clear()
        a = Float(floats(100))
        dr.eval((a + 1) * a - dr.sin(a))
        traced = [row for row in dr.kernel_history() if row["type"] == dr.KernelType.JIT]
    expect_equal(len(traced), 1)


def test_masks_agree_with_numpy():
    a = floats(1000)
    mask = (Float(a) > 0) & ~(Float(a) > 1) | Bool(a < -2)
    same(mask, (a > 0) & ~(a > 1) | (a < -2))
    same(dr.select(mask, Float(a), 0), numpy.where((a > 0) & ~(a > 1) | (a < -2), a, 0))


if __name__ == "__main__":
    main(globals())
