#!/bin/sh
# The program that docs/api-tour.md shows, built from the page's own text, does what the page says.
set -u
BUILD=${GPUMEM_BUILD_DIR:-build}
PROGRAM=$BUILD/tests/docs/api_tour
echo "1..2"
if [ ! -x "$PROGRAM" ]; then
    echo "not ok 1 - docs/api-tour.md is built"
    echo "not ok 2 - docs/api-tour.md runs"
    exit 1
fi
echo "ok 1 - docs/api-tour.md is built"
OUTPUT=$("$PROGRAM" 2>&1)
STATUS=$?
echo "$OUTPUT" | sed 's/^/# /'
if [ $STATUS -eq 0 ]; then
    echo "ok 2 - docs/api-tour.md runs"
else
    echo "not ok 2 - docs/api-tour.md runs (status $STATUS)"
    exit 1
fi
