#!/usr/bin/env python3
"""Each input of the corpus once, on each target of the build with AddressSanitizer: a test for a target. What a
fuzzer found stays found. ./dev test --long fuzz runs the fuzzers themselves. And of the archives: each is
what packing its files again gives."""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import corpus  # noqa: E402  pylint: disable=wrong-import-position

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", corpus.SOURCE / "build-asan"))
# As libFuzzer has it: an input that wants gigabytes is a finding.
LIMITS = ":max_allocation_size_mb=2048:hard_rss_limit_mb=2048"


def run(target):
    """What the target says, and whether it ran all inputs."""
    environment = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + LIMITS)
    with tempfile.TemporaryDirectory() as folder:
        corpus.seeds(target, folder)
        corpus.unpack(target, folder)
        inputs = sorted(Path(folder).iterdir())
        done = subprocess.run([BUILD / f"tests/fuzz/fuzz_{target}", *inputs], env=environment, check=False,
                              text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    good = done.returncode == 0 and re.search(r"^Executed [1-9]", done.stdout, re.M) is not None and inputs
    return good, done.stdout


def unpacked_and_packed_again_is_the_same(target):
    with tempfile.TemporaryDirectory() as folder:
        corpus.unpack(target, folder)
        files = [(path.name, path.read_bytes()) for path in Path(folder).iterdir()]
    # The compressor may be another: what it was given is compared.
    return corpus.lzma.decompress(corpus.archive_of(target).read_bytes()) == \
        corpus.lzma.decompress(corpus.packed(files))


def main():
    sanitized = os.environ.get("GPUMEM_SANITIZE", "off") == "address"
    print(f"1..{len(corpus.TARGETS) + 1}")
    bad = [target for target in corpus.TARGETS if not unpacked_and_packed_again_is_the_same(target)]
    print(f"{'not ok' if bad else 'ok'} 1 - archives depend on their files alone{': ' * bool(bad)}{' '.join(bad)}")
    if not sanitized:
        print("skip: the corpus runs in the build with AddressSanitizer")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        runs = list(pool.map(run, corpus.TARGETS)) if sanitized else [(True, "")] * len(corpus.TARGETS)
    for number, (target, (good, said)) in enumerate(zip(corpus.TARGETS, runs), 2):
        if not good:
            bad.append(target)
            for line in said.splitlines()[-60:]:
                print(f"# {line}")
        print(f"{'ok' if good else 'not ok'} {number} - {target}: every input of the corpus"
              f"{'' if sanitized else ' # SKIP not with AddressSanitizer'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
