# shellcheck shell=sh
# ./dev test and what else proves something. Sourced by ./dev; tests/runner/session.py does the work.

# What is wrong is said before anything is installed. Python knows what each stage needs; where it is missing
# it comes with the packages of the whole.
command_test() {
    if command -v python3 >/dev/null 2>&1; then
        packages=$(python3 tests/runner/session.py --packages "$@") || exit 2
    else
        case " $* " in
        *" --all "* | *" --only "* | *" --long "*) packages=all ;;
        *) packages="test" ;;
        esac
    fi
    need_for "$packages"
    exec python3 tests/runner/session.py "$@"
}

command_clients() {
    case ${1:-} in -*) wrong "clients: there is no option '$1'" ;; esac
    command_test --only clients "$@"
}

command_lint() {
    [ $# -le 1 ] || wrong "lint: '$2' is not understood"
    case ${1:-} in
    '') command_test --only lint ;;
    format | clang | tidy | tidy-quick | tidy-recent | cppcheck | cppcheck-recent | clang-build)
        need_for lint
        guard lint "$@"
        sh tools/dev/lint.sh "$1"
        ;;
    *) wrong "lint: there is no part '$1'" ;;
    esac
}

command_format() {
    no_arguments format "$@"
    need_for format
    sh tools/dev/lint.sh format-all || exit 2
}

command_parity() {
    need_for test
    guard parity "$@"
    quietly "building release" build parity ptx_record softgpu softgpu_shim gpumem_profiles || exit 1
    status=0
    sh tools/dev/replay.sh "$BUILD" "$@" || status=1
    # The same of what kernels answer; tests/parity/test_ptx.py is the test of it.
    for recording in tests/parity/ptx/recordings/*/; do
        [ ! -d "$recording" ] || python3 tests/parity/ptx/compare.py --recording "$recording" || status=1
    done
    return $status
}

# script NAME FILE ARGUMENT...: a command that is a script of tests/.
script() {
    name=$1
    file=$2
    shift 2
    need_for test
    guard "$name" "$@"
    python3 "$file" "$@"
}

command_prove() {
    [ $# -gt 0 ] || wrong "prove: the name of a driver function is missing"
    script prove tests/coverage/prove.py "$@"
}

command_coverage() {
    script coverage tests/coverage/lines.py "$@"
}

command_mutate() {
    script mutate tests/mutate/mutate.py "$@"
}

command_fuzz() {
    need_for fuzz
    guard fuzz "$@"
    tests/fuzz/run "$@"
}
