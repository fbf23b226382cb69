#!/bin/sh
# Each input of the corpus once, on each target of the build with AddressSanitizer: a test for a target.
# What a fuzzer found stays found. tests/long/test_fuzzers.sh builds the fuzzers themselves.
set -eu
cd "$(dirname "$0")/../.."

if [ "${GPUMEM_SANITIZE:-off}" != address ]; then
    echo "1..0 # SKIP the corpus runs in the build with AddressSanitizer"
    exit 0
fi
# As libFuzzer has it: an input that wants gigabytes is a finding.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:max_allocation_size_mb=2048:hard_rss_limit_mb=2048"

targets="api copy objects image import kernel profile program"
echo "1..8"
number=0
worst=0
for target in $targets; do
    number=$((number + 1))
    log=$(mktemp)
    seeds=$(mktemp -d)
    tests/fuzz/seeds.sh "$target" "$seeds"
    name="$target: every input of the corpus"
    # Files by name, so that none is left out and none is made up.
    if [ -d "tests/fuzz/corpus/$target" ] &&
        find "tests/fuzz/corpus/$target" "$seeds" -type f -name '*.bin' -print0 |
        xargs -0 -r "${GPUMEM_BUILD_DIR:-build-asan}/tests/fuzz/fuzz_$target" >"$log" 2>&1 &&
        grep -q '^Executed [1-9]' "$log"; then
        echo "ok $number - $name"
    else
        tail -n 60 "$log"
        echo "not ok $number - $name"
        worst=1
    fi
    rm -rf "$log" "$seeds"
done
exit $worst
