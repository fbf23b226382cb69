#!/bin/sh
# usage: replay.sh BUILD [ARGUMENT OF compare.py...]
# Replays the recorded scenarios on softgpu and compares. The runs stay where GPUMEM_PARITY_RUNS says.
set -eu
cd "$(dirname "$0")/../.."
BUILD=$1
shift
[ -z "${GPUMEM_PARITY_RUNS:-}" ] || set -- --runs "$GPUMEM_PARITY_RUNS" "$@"
exec python3 tests/parity/replay.py --build "$BUILD" "$@"
