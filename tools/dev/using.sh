# shellcheck shell=sh
# ./dev demo, bench, package, bundle, floors. Sourced by ./dev.

# All that is installed, so that `cmake --install build` works after ./dev demo.
PRODUCT="gpumem_command gpumem_manual gpumem gpumem_static vkgdr softgpu softgpu_shim softgpu_audit
    softgpu_wrappers gpumem_profiles runtime12 runtime13"

# The largest of the C compiler's own programs: a real file that every building machine has.
demo_file() {
    largest=
    size=0
    for name in cc1 cc1plus lto1 f951; do
        path=$("${CC:-cc}" "-print-prog-name=$name" 2>/dev/null || true)
        [ -f "$path" ] || continue
        bytes=$(wc -c <"$path")
        if [ "$bytes" -gt "$size" ]; then
            largest=$path
            size=$bytes
        fi
    done
    [ -n "$largest" ] || largest=$BUILD/lib/gpumem/softgpu/libsoftgpu.so.0
    readlink -f "$largest"
}

# Prints nvidia or softgpu: NVIDIA's driver where it opens and has a device.
pick_driver() {
    if GPUMEM_DRIVER=nvidia "$BUILD/bin/gpumem" info >/dev/null 2>&1; then
        echo nvidia
    else
        echo softgpu
    fi
}

command_demo() {
    need_a_build
    guard demo "$@"
    say "building into build/ ..."
    # shellcheck disable=SC2086  # a list of words
    quietly "building" build $PRODUCT example_tour || exit 1
    file=${1:-$(demo_file)}
    if [ -n "${GPUMEM_DRIVER:-}" ]; then
        say "driver: $GPUMEM_DRIVER, as GPUMEM_DRIVER says"
    else
        GPUMEM_DRIVER=$(pick_driver)
        export GPUMEM_DRIVER
        case $GPUMEM_DRIVER in
        nvidia) say "driver: nvidia (libcuda.so.1 opens and has a device)" ;;
        softgpu) say "driver: softgpu (no NVIDIA driver with a device here)" ;;
        esac
    fi
    say "\$ GPUMEM_DRIVER=$GPUMEM_DRIVER build/bin/gpumem load $file"
    status=0
    "$BUILD/bin/gpumem" load "$file" || status=$?
    [ "$status" = 0 ] || exit "$status"
    say "next: GPUMEM_DRIVER=$GPUMEM_DRIVER build/examples/tour, explained in docs/api-tour.md"
}

# Other allocators from Python, in the clients' environment where that has been made.
bench_peers() {
    python=python3
    [ ! -x "$BUILD/clients/cuda13/bin/python" ] || python=$BUILD/clients/cuda13/bin/python
    say ""
    say "== peers"
    command -v "$python" >/dev/null 2>&1 || {
        say "no python3: PyTorch, CuPy, cuda.core and RMM are not measured"
        return 0
    }
    case $GPUMEM_DRIVER in
    softgpu) "$BUILD/bin/gpumem" run --softgpu -- "$python" bench/peers.py ;;
    *) "$python" bench/peers.py ;;
    esac
}

command_bench() {
    need_a_build
    guard bench "$@"
    quietly "building release" build || exit 1
    ls "$BUILD"/bench/bench_* >/dev/null 2>&1 || lack "bench/ has no benchmark"
    if [ -z "${GPUMEM_DRIVER:-}" ]; then
        GPUMEM_DRIVER=$(pick_driver)
        export GPUMEM_DRIVER
    fi
    say "driver: $GPUMEM_DRIVER"
    worst=0
    for program in "$BUILD"/bench/bench_*; do
        say ""
        say "== ${program##*/}"
        "$program" "$@" || worst=1
    done
    bench_peers || worst=1
    return $worst
}

command_api() {
    no_arguments api "$@"
    need_for api
    # Debian's bindings belong to Debian's interpreter.
    /usr/bin/python3 tools/api/describe.py
}

command_docs() {
    no_arguments docs "$@"
    need_for docs
    python3 tools/api/reference.py "$BUILD/docs/api" || exit 1
    say "made: $BUILD/docs/api/index.html"
}

command_floors() {
    need_for test
    quietly "building release" build || exit 1
    python3 tests/lint/floors.py --build build "$@"
}

command_package() {
    no_arguments package "$@"
    need_for package
    guard package "$@"
    # shellcheck disable=SC2086  # a list of words
    quietly "building release" build $PRODUCT || exit 1
    status=0
    quietly "packaging" packaging/make.sh dist "$BUILD" || status=$?
    [ "$status" = 0 ] || [ "$status" = "$PARTLY" ] || exit 1
    # What is left of an earlier run make.sh has removed.
    made=$(find dist -maxdepth 1 \( -name '*.deb' -o -name '*.whl' \) | sort | tr '\n' ' ')
    say "made: $made"
    [ "$status" = 0 ] || exit 2
}

command_release() {
    [ $# -le 1 ] || wrong "release: '$2' is not understood"
    case ${1:-} in '' | --dry-run) ;; *) wrong "release: '$1' is not understood" ;; esac
    need_for package
    guard release "$@"
    # shellcheck disable=SC2086  # a list of words
    quietly "building release" build $PRODUCT || exit 1
    python3 packaging/release.py "$BUILD" "$ROOT/dist/release" "$@"
}

command_bundle() {
    no_arguments bundle "$@"
    need_a_build
    guard bundle "$@"
    quietly "building release" build || exit 1
    tests/bundle/make.sh "$BUILD" "$ROOT/bundle"
}
