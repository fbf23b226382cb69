"""Functions that torch.compile compiles through Triton, against PyTorch's own answers on the CPU. Products of matrices
are by Triton's templates, where the default is cuBLAS; nothing is measured to choose among them, for which PyTorch would
fill memory by kernels that are machine code. With the argument `products` also what needs mma."""
import math
import sys

import torch
from torch._inductor import config, select_algorithm
from torch.nn.attention.flex_attention import flex_attention

from tap import expect, main

config.max_autotune_gemm = True
config.max_autotune_gemm_backends = "TRITON"
# It would compute constants on the device, by a kernel that is machine code.
config.joint_graph_constant_folding = False
select_algorithm.add_preprocessing_fn(lambda choices: choices[:1])
PRODUCTS = "products" in sys.argv[1:]
sys.argv[1:] = [word for word in sys.argv[1:] if word != "products"]
RANDOM = torch.Generator().manual_seed(17)


def numbers(*shape, **more):
    return torch.randn(*shape, generator=RANDOM).to(**more)


def sent(tensor):
    return torch.empty_like(tensor, device="cuda").copy_(tensor)


def check(function, *arguments, most=1e-5):
    """The greatest difference to the CPU's, relative to its greatest value. The CPU computes in double precision."""
    got = torch.compile(function)(*map(sent, arguments))
    want = function(*(argument.double() if argument.is_floating_point() else argument for argument in arguments))
    for ours, theirs in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,)):
        difference = (ours.cpu().double() - theirs.double()).abs().max().item()
        expect(difference <= most * max(1.0, theirs.double().abs().max().item()), f"off by {difference}")


def test_elementwise():
    check(lambda x, y: torch.sin(x) * y + torch.where(x > 0, x, y), numbers(1000), numbers(1000))
    check(lambda x: torch.nn.functional.gelu(x) / (1 + torch.exp(-x)), numbers(37, 65))
    check(lambda x, y: (x * 3 + y) % 7, torch.arange(500), torch.arange(500) * 5)


def test_reductions():
    check(lambda x: (x.sum(), x.mean(0), x.amax(1), x.var(1)), numbers(64, 300))
    check(lambda x: x.argmax(1), numbers(33, 70))
    check(lambda x: x.cumsum(1), numbers(8, 200))


def test_softmax():
    check(lambda x: torch.softmax(x, -1), numbers(64, 300))
    check(lambda x: torch.log_softmax(x, 0), numbers(100, 17))


def test_a_layer_norm():
    check(lambda x, w, b: torch.nn.functional.layer_norm(x, (96,), w, b), numbers(20, 96), numbers(96), numbers(96))


def test_gathers_and_scatters():
    check(lambda table, index: table[index] * 2, numbers(50, 8), torch.randint(50, (120,), generator=RANDOM))


def test_gradients():
    x = numbers(30, 40)

    def loss(tensor):
        return (torch.tanh(tensor) * tensor).sum()
    there, here = sent(x).requires_grad_(), x.double().requires_grad_()
    one = torch.empty((), device="cuda").copy_(torch.ones(()))
    torch.compile(loss)(there).backward(one)
    loss(here).backward()
    expect((there.grad.cpu().double() - here.grad).abs().max().item() < 1e-5)


if PRODUCTS:
    def test_products_of_matrices():
        check(lambda a, b: torch.relu(a @ b), numbers(64, 96), numbers(96, 48))
        check(lambda a, b: torch.relu(a @ b), numbers(64, 96, dtype=torch.float16), numbers(96, 48, dtype=torch.float16),
              most=1e-3)
        check(lambda x, w, b: torch.addmm(b, x, w), numbers(32, 64), numbers(64, 32), numbers(32))
        check(torch.bmm, numbers(3, 32, 64), numbers(3, 64, 32))

    def test_attention():
        queries, keys, values = (numbers(1, 2, 128, 32) for _ in range(3))
        got = torch.compile(flex_attention)(*map(sent, (queries, keys, values)))
        weights = torch.softmax(queries.double() @ keys.double().transpose(2, 3) / math.sqrt(32), -1)
        expect((got.cpu().double() - weights @ values.double()).abs().max().item() < 1e-5)


if __name__ == "__main__":
    main(globals())
