#!/bin/sh
# usage: lint.sh format|format-all|clang|clang-build|tidy|tidy-quick|tidy-recent|cppcheck|cppcheck-recent
# One part of ./dev lint. Exit status: 0 nothing found, 77 it cannot be told here, and why.
set -eu
cd "$(dirname "$0")/../.."
JOBS=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

our_sources() {
    git ls-files --cached --others --exclude-standard -- "$@"
}

# Versions lay out differently; .clang-format is what this one does.
LAYOUT=14

layout_is_known() {
    version=$(clang-format --version | sed 's/.*version \([0-9]*\).*/\1/')
    [ "$version" = "$LAYOUT" ] || {
        echo "skip: clang-format is version $version, and .clang-format is for $LAYOUT"
        exit 77
    }
}

format() {
    layout_is_known
    # Which files, not each place: ./dev format mends them all.
    findings=$(our_sources '*.c' '*.h' '*.cpp' '*.hpp' | xargs clang-format --dry-run 2>&1 |
        sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: warning: .*/\1/p' | sort -u)
    [ -z "$findings" ] || {
        echo "not formatted (./dev format does it):" "$findings"
        return 1
    }
}

# What clang says of sources is in compile_commands.json.
configure_clang() {
    cmake --preset clang
}

# tidy [ARGUMENT...]: the files of standard input.
tidy() {
    configure_clang >/dev/null
    xargs -r -P "$JOBS" -n 4 clang-tidy --quiet -p build-clang "$@"
}

# What the last commits touched, or all that a shallow clone has; and what is not committed.
recent() {
    {
        git log -n 40 --name-only --format= -- 'src/*.c' 'tools/*.c'
        git diff --name-only HEAD -- 'src/*.c' 'tools/*.c'
    } | sort -u | while read -r file; do
        [ ! -f "$file" ] || echo "$file"
    done
}

# The files of standard input. incorrectLogicOperator: cppcheck takes two calls through one pointer for the same value.
cppcheck_them() {
    xargs -r cppcheck --quiet --std=c11 --inline-suppr --error-exitcode=1 -j "$JOBS" \
        --enable=warning,portability --suppress=incorrectLogicOperator \
        -D_GNU_SOURCE -D'ElfW(type)=Elf64_##type' -I include -I src
}

case ${1:-} in
format) format ;;
format-all)
    layout_is_known
    our_sources '*.c' '*.h' '*.cpp' '*.hpp' | xargs clang-format -i
    ;;
clang)
    configure_clang
    python3 tools/dev/clang_warnings.py build-clang
    ;;
clang-build)
    configure_clang
    cmake --build --preset clang -j "$JOBS" -- -k 0
    ;;
tidy) our_sources 'src/*.c' 'tools/*.c' | tidy ;;
# The static analyzer takes nearly all of clang-tidy's time.
tidy-quick) our_sources 'src/*.c' 'tools/*.c' | tidy --checks='-clang-analyzer-*' ;;
tidy-recent) recent | tidy ;;
cppcheck) our_sources 'src/*.c' 'tools/*.c' | cppcheck_them ;;
cppcheck-recent) recent | cppcheck_them ;;
*)
    echo "usage: lint.sh format|format-all|clang|clang-build|tidy|tidy-quick|tidy-recent|cppcheck|cppcheck-recent" >&2
    exit 2
    ;;
esac
