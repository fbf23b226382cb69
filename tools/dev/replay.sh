#!/bin/sh
# usage: replay.sh BUILD [ARGUMENT OF compare.py...]
# Replays every scenario on softgpu and compares with each recording of hardware, with as many
# devices as that had. The memory is the recorded device's, which softgpu would else lower to what
# this machine has. The runs stay in the build folder, or where GPUMEM_PARITY_RUNS says.
set -eu
cd "$(dirname "$0")/../.."
BUILD=$1
shift
JOBS=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

if [ -f tests/parity/replay.py ]; then
    [ -z "${GPUMEM_PARITY_RUNS:-}" ] || set -- --runs "$GPUMEM_PARITY_RUNS" "$@"
    exec python3 tests/parity/replay.py --build "$BUILD" "$@"
fi

devices_of() {
    sed -n 's/^# device .* count \([0-9]*\) .*/\1/p' "$1" | head -n 1
}

pairs=
for recording in tests/parity/recordings/*.txt; do
    devices=$(devices_of "$recording")
    run="${GPUMEM_PARITY_RUNS:-$BUILD}/parity-softgpu-$devices.txt"
    case " $pairs " in
    *" $run "*) ;;
    *)
        GPUMEM_DRIVER=softgpu SOFTGPU_PROFILE=h200 SOFTGPU_MEMORY=150109880320 SOFTGPU_LOG=off \
            SOFTGPU_DEVICES=$devices "$BUILD/tests/parity/parity" run --jobs "$JOBS" -o "$run"
        ;;
    esac
    pairs="$pairs $recording $run"
done
# shellcheck disable=SC2086 # names of files without blanks
exec python3 tests/parity/compare.py $pairs "$@"
