"""Writes a memory snapshot of PyTorch: blocks of several sizes, of a second stream, and used by a second stream; steps,
and an emptied cache. usage: torch_snapshot.py FILE. tests/fixtures/torch_snapshot.pickle.xz is what PyTorch 2.15 wrote
under `gpumem run --softgpu`."""
import sys

import torch

MIB = 1 << 20


def empty(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def step(number, side):
    blocks = [empty((1 + i + number) * MIB // 4) for i in range(8)]
    blocks[0].record_stream(side)
    with torch.cuda.stream(side):
        blocks.append(empty(70000))
    del blocks
    torch.cuda.synchronize()


def main():
    torch.cuda.memory._record_memory_history(context=None, global_record_annotations=True)
    side, kept = torch.cuda.Stream(), empty(3 * MIB)
    for number in range(4):
        with torch.autograd.profiler.record_function("step"):
            step(number, side)
        if number == 2:
            torch.cuda.empty_cache()
    torch.cuda.memory._dump_snapshot(sys.argv[1])
    del kept


main()
