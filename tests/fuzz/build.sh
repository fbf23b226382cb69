#!/bin/sh
# Builds the fuzz targets in build-fuzz. Status 77 with a line that begins with "skip:" where
# clang's fuzzer runtime is not installed.
set -eu
cd "$(dirname "$0")/../.."

cc=$(command -v clang || true)
[ -n "$cc" ] || { echo "skip: clang is not installed"; exit 77; }
# clang's packages only recommend the runtime libraries.
probe=$(mktemp)
if ! echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return !d && n; }' |
    "$cc" -x c -fsanitize=fuzzer,address,undefined -o "$probe" - >/dev/null 2>&1; then
    rm -f "$probe"
    echo "skip: clang's fuzzer runtime is not installed (Debian: libclang-rt-dev)"
    exit 77
fi
rm -f "$probe"

log=$(mktemp)
if ! { cmake -S . -B build-fuzz -G Ninja -DCMAKE_C_COMPILER="$cc" -DCMAKE_BUILD_TYPE=Debug \
    -DGPUMEM_SANITIZE=address -DGPUMEM_FUZZ=ON -DGPUMEM_WERROR=ON -DGPUMEM_TESTS=OFF \
    -DGPUMEM_BENCH=OFF -DGPUMEM_EXAMPLES=OFF &&
    cmake --build build-fuzz --target fuzz_api fuzz_copy fuzz_files fuzz_objects fuzz_image fuzz_import fuzz_profile fuzz_program fuzz_kernel; } >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    rm -f "$log"
    echo "the fuzz targets do not build" >&2
    exit 1
fi
rm -f "$log"
