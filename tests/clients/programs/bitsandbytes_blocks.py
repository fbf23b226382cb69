"""bitsandbytes' blockwise quantization, whose kernels are relocatable PTX, against its own form for the CPU."""
import torch
from bitsandbytes import functional

from tap import expect, main

BLOCKS = (4096, 2048, 1024, 512, 256, 128, 64)


def sent(tensor):
    return torch.empty_like(tensor, device="cuda").copy_(tensor)


def check(kind, count, block):
    """Where a value lies in the middle of two codes, either is right: the greatest error says so."""
    values = torch.randn(count, generator=torch.Generator().manual_seed(count)).to(kind)
    table = functional.create_dynamic_map()
    codes, state = functional.quantize_blockwise(sent(values), code=sent(table), blocksize=block)
    back = functional.dequantize_blockwise(codes, state).cpu().float()
    their_codes, their_state = functional.quantize_blockwise(values.float(), code=table, blocksize=block)
    theirs = functional.dequantize_blockwise(their_codes, their_state)
    most = (theirs - values.float()).abs().max() * 1.01 + (0 if kind is torch.float32 else 0.02)
    expect(torch.equal(state.absmax.cpu(), their_state.absmax), f"{kind} {block}: other maxima")
    expect((codes.cpu().int() - their_codes.int()).abs().max() <= 1, f"{kind} {block}: other codes")
    expect((back - values.float()).abs().max() <= most, f"{kind} {block}: {(back - values.float()).abs().max()}")


def test_whole_blocks_of_every_size():
    for block in BLOCKS:
        check(torch.float32, 4096, block)


def test_a_part_of_a_block_at_the_end():
    check(torch.float32, 1000, 256)
    check(torch.float32, 5, 64)


def test_halves():
    for kind in (torch.float16, torch.bfloat16):
        check(kind, 2048, 256)


if __name__ == "__main__":
    main(globals())
