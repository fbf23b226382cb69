#!/bin/sh
# Each input of the corpus once, on each target: a test for a target. What a fuzzer found stays found.
set -eu
cd "$(dirname "$0")/../.."

status=0
said=$(tests/fuzz/build.sh) || status=$?
if [ "$status" = 77 ]; then
    echo "1..0 # SKIP ${said#skip: }"
    exit 0
fi
[ "$status" = 0 ] || exit 1

echo "1..8"
number=0
worst=0
for target in api copy objects image import kernel profile program; do
    number=$((number + 1))
    log=$(mktemp)
    seeds=$(mktemp -d)
    tests/fuzz/seeds.sh "$target" "$seeds"
    name="$target: every input of the corpus"
    # Files by name, so that none is left out and none is made up.
    if [ -d "tests/fuzz/corpus/$target" ] &&
        find "tests/fuzz/corpus/$target" "$seeds" -type f -name '*.bin' -print0 |
        xargs -0 -r "build-fuzz/tests/fuzz/fuzz_$target" -timeout=20 >"$log" 2>&1 &&
        grep -q '^Executed' "$log"; then
        echo "ok $number - $name"
    else
        tail -n 60 "$log"
        echo "not ok $number - $name"
        worst=1
    fi
    rm -rf "$log" "$seeds"
done
exit $worst
