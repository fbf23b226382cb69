#!/bin/sh
# The program that docs/cpp.md shows, built from the page's own text, prints what the page says.
set -u
SOURCE=${GPUMEM_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
BUILD=${GPUMEM_BUILD_DIR:-$SOURCE/build}
PROGRAM=$BUILD/tests/docs/cpp_page
echo "1..2"
if [ ! -x "$PROGRAM" ] && ! command -v c++ >/dev/null; then
    echo "ok 1 - docs/cpp.md is built # SKIP no C++ compiler is installed"
    echo "ok 2 - docs/cpp.md prints what it says # SKIP no C++ compiler is installed"
    exit 0
fi
if [ ! -x "$PROGRAM" ]; then
    echo "not ok 1 - docs/cpp.md is built"
    echo "not ok 2 - docs/cpp.md prints what it says"
    exit 1
fi
echo "ok 1 - docs/cpp.md is built"
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
# The first block without a language, behind "It prints".
# shellcheck disable=SC2016  # the quotes of a shell are the marks of a block
sed -n '/^It prints$/,/^Build it with$/p' "$SOURCE/docs/cpp.md" | sed -n '/^```$/,/^```$/p' |
    sed '/^```$/d' >"$WORK/wanted"
touch "$WORK/diff"
"$PROGRAM" >"$WORK/printed" 2>&1
STATUS=$?
if [ $STATUS -eq 0 ] && [ -s "$WORK/wanted" ] && diff -u "$WORK/wanted" "$WORK/printed" >"$WORK/diff"; then
    echo "ok 2 - docs/cpp.md prints what it says"
else
    sed 's/^/# /' "$WORK/printed" "$WORK/diff"
    echo "not ok 2 - docs/cpp.md prints what it says (status $STATUS)"
    exit 1
fi
