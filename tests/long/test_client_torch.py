#!/usr/bin/env python3
"""PyTorch and bitsandbytes on softgpu: what they do themselves with the runtime, what Triton compiles for them, and what
is refused by name. Beside numbers that hold for each device, Triton's products need mma: it writes wgmma for 9.0."""
import os
import subprocess
import sys
from pathlib import Path

CLIENTS = Path(__file__).resolve().parents[1] / "clients"
sys.path[:0] = [str(CLIENTS), str(CLIENTS.parent / "harness")]
import client  # noqa: E402  pylint: disable=wrong-import-position
import environment  # noqa: E402  pylint: disable=wrong-import-position
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position

# Lines of softgpu's that name what cannot run.
REFUSED = ("_elementwise_kernel", "was not launched: its image holds machine code without PTX",
           "libcublas.so.13 has NVIDIA's CUDA runtime linked into it")


def cases(python):
    """Title, options, program, its arguments, variables, what it must say."""
    cublas = next(python.parents[1].glob("lib/python*/site-packages/nvidia/cublas/lib"), Path("/nonexistent"))
    older = {"BNB_CUDA_VERSION": "126", "LD_LIBRARY_PATH": str(cublas)}
    return (("PyTorch's calls of the runtime", ("--devices", "2"), "torch_runtime.py", (), {}, REFUSED),
            ("compiled functions on an H200", (), "torch_compiled.py", (), {}, ()),
            ("compiled functions and products on an A100", ("--profile", "a100"), "torch_compiled.py", ("products",), {}, ()),
            ("bitsandbytes of CUDA 13 on an RTX 5090", ("--profile", "rtx5090"), "bitsandbytes_blocks.py", (), {}, ()),
            ("bitsandbytes of CUDA 12 on an H200, beside PyTorch of CUDA 13", (), "bitsandbytes_blocks.py", (), older, ()))


def main():
    client.long_only()
    try:
        python = environment.python_of("torch", client.BUILD)
    except environment.Unavailable as why:
        client.skip(f"no environment torch: {(str(why).strip().splitlines() or [''])[-1]}")
    report, cache = Report(), str(client.BUILD / "clients" / "cache")
    chosen = sys.argv[1:]
    for title, options, program, arguments, variables, said in cases(python):
        if chosen and program not in chosen:
            continue
        command = [client.BUILD / "bin" / "gpumem", "run", "--softgpu", "--memory", "4G", *options, "--", python,
                   CLIENTS / "programs" / program, *arguments]
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, env=dict(os.environ, XDG_CACHE_HOME=cache, **variables))
        report.expect(done.returncode == 0 and "\nok 3" in done.stdout and all(text in done.stdout for text in said),
                      title, done.stdout)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
