#!/usr/bin/env python3
"""gpumem run --check on the hazards of hazards.py: each is found by the checker that it is for, under one schedule at
least, and nothing is said of its mended twin under any. NVRTC compiles the kernels, from the clients' environment."""
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "clients"), str(TESTS / "cli")]
import checked  # noqa: E402  pylint: disable=wrong-import-position
import client  # noqa: E402  pylint: disable=wrong-import-position
import environment  # noqa: E402  pylint: disable=wrong-import-position
import harness  # noqa: E402  pylint: disable=wrong-import-position
import hazards  # noqa: E402  pylint: disable=wrong-import-position

checked.HEAD = ""  # NVRTC's texts begin with their own
CHECKS = "memory,race,init,sync"
ORDERS = [("eager", 0), ("late", 0), *(("random", seed) for seed in range(1, 7))]

COMPILER = """
import json, sys
from cuda.bindings import nvrtc
def ok(answer):
    assert answer[0] == 0, answer
    return answer[1] if len(answer) > 1 else None
texts = []
for source in json.load(sys.stdin):
    program = ok(nvrtc.nvrtcCreateProgram(source.encode(), b"k.cu", 0, None, None))
    options = [b"--gpu-architecture=compute_80", b"-std=c++17"]
    answer = nvrtc.nvrtcCompileProgram(program, len(options), options)
    log = b" " * ok(nvrtc.nvrtcGetProgramLogSize(program))
    ok(nvrtc.nvrtcGetProgramLog(program, log))
    assert answer[0] == 0, source + log.decode()
    text = b" " * ok(nvrtc.nvrtcGetPTXSize(program))
    ok(nvrtc.nvrtcGetPTX(program, text))
    texts.append(text.decode().rstrip("\\0"))
json.dump(texts, sys.stdout)
"""

AROUND = """
data, flag = alloc(4096), alloc(4096)
{before}
put(flag, bytes(4096))
{lines}
free(data)
free(flag)
"""
LAUNCH = "launch('k', data, flag, 1024, blocks={}, threads={})\nsync()"


def variant(text, number):
    return re.sub(r"@\{(.*?)@\|(.*?)@\}", lambda found: found[1 + number], text, flags=re.DOTALL)


def compiled(python, sources):
    done = subprocess.run([str(python), "-c", COMPILER], input=json.dumps(sources), stdout=subprocess.PIPE, check=True,
                          text=True)
    return json.loads(done.stdout)


def reports(folder, text, lines, before=""):
    """What is said in each order of work, one after another: the order, the exit status, standard error."""
    for schedule, seed in ORDERS:
        status, _, error = checked.run(folder, CHECKS, text, AROUND.format(lines=lines, before=before),
                                       SOFTGPU_SCHEDULE=schedule, SOFTGPU_SEED=str(seed), SOFTGPU_KERNEL_LIMIT="5")
        yield f"{schedule} {seed}", status, error


def expect_found(said, expected):
    seen = []
    for order, _, error in said:
        if any(one in error for one in expected.split("|")):
            return
        seen.append(f"{order}:\n{error}")
    raise harness.Failure(f"no {expected}\n" + "".join(seen)[:3000])


def expect_silent(said, remarks=False):
    for order, status, error in said:
        silent = "checked: 0 errors, 0 warnings, " in error if remarks else error == checked.SILENT
        harness.expect(status == 0 and silent, f"of the mended one, {order}, status {status}:\n{error}")


def kernel_test(folder, row, texts):
    _, (blocks, threads), expected, _ = row
    lines = LAUNCH.format(blocks, threads)
    clear = "put(data, bytes(4096))"
    if expected:
        expect_found(reports(folder, texts[0], lines, clear), expected)
    expect_silent(reports(folder, texts[-1], lines, clear))


def host_test(folder, row, text):
    _, expected, broken, mended = row
    expect_found(reports(folder, text, broken), expected)
    expect_silent(reports(folder, text, mended), remarks=True)


def main():
    if os.environ.get("GPUMEM_TEST_LONG") != "1":
        print("1..0 # SKIP takes long: ./dev test --long hazards")
        return 0
    try:
        python = environment.python_of("numba", client.BUILD)
    except environment.Unavailable as why:
        client.skip(f"no environment numba: {(str(why).strip().splitlines() or [''])[-1]}")
    bodies = [variant(row[3], number) for row in hazards.ROWS for number in ((0, 1) if row[2] else (1,))]
    texts = iter(compiled(python, [hazards.HEAD + body + "\n}\n" for body in [*bodies, hazards.HOST_KERNEL]]))
    tests = {row[0]: functools.partial(kernel_test, row=row, texts=[next(texts) for _ in range(2 if row[2] else 1)])
             for row in hazards.ROWS}
    host = next(texts)
    tests |= {f"host: {row[0]}": functools.partial(host_test, row=row, text=host) for row in hazards.HOST}
    return harness.run_all((name, harness.in_folder(test)) for name, test in tests.items())


if __name__ == "__main__":
    sys.exit(main())
