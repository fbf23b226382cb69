# shellcheck shell=sh
# Builds, and what of them is shown. Sourced by ./dev.

# A cache of compilations is used where one is installed, and never needed. Whoever set the launcher, to
# nothing too, has decided.
use_cache() {
    command -v ccache >/dev/null 2>&1 || return 0
    export CMAKE_C_COMPILER_LAUNCHER="${CMAKE_C_COMPILER_LAUNCHER-ccache}"
    export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER-ccache}"
    # Else nothing that uses a precompiled header is found in it.
    export CCACHE_SLOPPINESS="${CCACHE_SLOPPINESS-pch_defines,time_macros,include_file_mtime}"
}

# The command that runs, if any: in the background, where an interrupt does not reach it.
CHILD=

leave() {
    [ -z "$CHILD" ] || kill "$CHILD" 2>/dev/null || true
    exit "$1"
}

# guard COMMAND ARGUMENT...: goes on under tests/runner/guard.py, so that nothing that is started
# here outlives this process, even when it is killed; and with TMPDIR a folder that is removed.
guard() {
    if [ -n "${GPUMEM_DEV_GUARDED:-}" ]; then
        unset GPUMEM_DEV_GUARDED
        return
    fi
    if command -v python3 >/dev/null 2>&1; then
        GPUMEM_DEV_GUARDED=1
        export GPUMEM_DEV_GUARDED
        exec python3 tests/runner/guard.py "$ROOT/dev" "$@"
    fi
    TMPDIR=$(mktemp -d)
    export TMPDIR
    trap 'rm -rf "$TMPDIR"' EXIT
    trap 'leave 130' INT
    trap 'leave 143' TERM HUP
}

# How far a command has come, of which the output is in a file: ninja counts its steps, make tells percents.
how_far() {
    sed -n -e 's/^\[\([0-9]*\)\/\([0-9]*\)\].*/, step \1 of \2/p' \
        -e 's/^\[ *\([0-9]*\)%\].*/, \1 %/p' "$1" | tail -n 1
}

# watch LABEL LOG PID: tells every ten seconds that a command still runs; on a terminal in one line.
watch() {
    begin_watch=$(date +%s)
    told=0
    ticks=0
    while kill -0 "$3" 2>/dev/null; do
        sleep 0.1
        ticks=$((ticks + 1))
        [ $((ticks % 10)) = 0 ] || continue
        seconds=$(($(date +%s) - begin_watch))
        if [ -t 1 ]; then
            printf '\r\033[K...  %s, %s s%s' "$1" "$seconds" "$(how_far "$2")"
        elif [ "$seconds" -ge $((told + 10)) ]; then
            told=$seconds
            say "...  $1, $seconds s$(how_far "$2")"
        fi
    done
    [ ! -t 1 ] || printf '\r\033[K'
}

# What a command ends with that did a part of its work, and said on its last line what is left out.
PARTLY=77

# quietly LABEL COMMAND...: shows the output only of what fails; returns 1 then, or PARTLY. The command has a shell of its own,
# because it may come back here, and POSIX sh has no local variables.
quietly() {
    label=$1
    shift
    log=$(mktemp)
    ("$@") >"$log" 2>&1 &
    CHILD=$!
    watch "$label" "$log" "$CHILD"
    status=0
    wait "$CHILD" || status=$?
    CHILD=
    if [ "$status" = "$PARTLY" ]; then
        tail -n 1 "$log" >&2
        rm -f "$log"
        return "$PARTLY"
    fi
    # Steps that went well say nothing but that.
    [ "$status" = 0 ] || grep -v -e '^\[[0-9]*/[0-9]*\] ' -e '^\[ *[0-9]*%\] ' "$log" >&2 || true
    rm -f "$log"
    [ "$status" != 0 ] || return 0
    printf 'dev: %s failed: %s\n' "$label" "$*" >&2
    return 1
}

# build [TARGET...]: configures the release build and builds these parts of it, or all. It is one
# configuration for all commands, so that nothing is compiled twice. Not in the foreground of a terminal,
# where ninja writes over its own lines.
build() {
    [ $# -gt 0 ] || set -- all
    # -k: one program that does not build must not hide the state of all the others.
    if has ninja-build; then
        # What make configured, ninja cannot go on with.
        if grep -q '^CMAKE_GENERATOR:INTERNAL=Unix' "$BUILD/CMakeCache.txt" 2>/dev/null; then
            rm -rf "$BUILD/CMakeCache.txt" "$BUILD/CMakeFiles"
        fi
        cmake --preset release || return 1
        cmake --build --preset release -j "$JOBS" --target "$@" -- -k 0
    else
        cmake --preset release -G 'Unix Makefiles' || return 1
        cmake --build --preset release -j "$JOBS" --target "$@" -- -k
    fi
}
