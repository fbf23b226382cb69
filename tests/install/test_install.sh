#!/bin/sh
# shellcheck disable=SC2317  # functions are called by name, through check
# Installs into a folder of its own, and builds a tiny C and a tiny C++ program against that: by
# pkg-config and by CMake's find_package, with the shared library and with the static one. Then
# moves the installed folder, since nothing in it may depend on where it was put.
set -u
SOURCE=${GPUMEM_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
BUILD=${GPUMEM_BUILD_DIR:-$SOURCE/build}
HERE=$SOURCE/tests/install

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
LOG=$WORK/log
COUNT=0
STATUS=0

# check TITLE COMMAND...
check() {
    title=$1
    shift
    COUNT=$((COUNT + 1))
    if "$@" >"$LOG" 2>&1; then
        echo "ok $COUNT - $title"
    else
        echo "not ok $COUNT - $title"
        sed 's/^/# /' "$LOG"
        STATUS=1
    fi
}

use_prefix() {
    PREFIX=$1
    LIBDIR=$(dirname "$(find "$PREFIX" -name libgpumem.a)")
    PKG_CONFIG_PATH=$LIBDIR/pkgconfig
    CMAKE_PREFIX_PATH=$PREFIX
    export PKG_CONFIG_PATH CMAKE_PREFIX_PATH
}

# The flags of pkg-config, and a compiler with its own, are lists of words.
# shellcheck disable=SC2046,SC2086
build_shared() {
    $1 "$2" -o "$WORK/program" $(pkg-config --cflags --libs gpumem) &&
        LD_LIBRARY_PATH=$LIBDIR "$WORK/program"
}

# --static adds what the archive needs; the archive itself is chosen over the shared library.
# shellcheck disable=SC2046,SC2086
build_static() {
    $1 "$2" -o "$WORK/program" $(pkg-config --cflags gpumem) \
        $(pkg-config --static --libs gpumem | sed 's/-lgpumem\b/-l:libgpumem.a/') &&
        ! readelf -d "$WORK/program" | grep -q libgpumem &&
        "$WORK/program"
}

# A program far from the install, run from elsewhere: softgpu is the install's.
finds_softgpu() {
    found=$(cd / && env -u LD_LIBRARY_PATH "$1") || return 1
    echo "$found"
    [ "$found" = "$LIBDIR/gpumem/softgpu/libsoftgpu.so.0" ]
}

# shellcheck disable=SC2046
softgpu_by_pkg_config() {
    mkdir -p "$WORK/far/away" &&
        cc "$HERE/opens_softgpu.c" -o "$WORK/far/away/program" $(pkg-config --cflags gpumem) \
            $(pkg-config --static --libs gpumem | sed 's/-lgpumem\b/-l:libgpumem.a/') &&
        finds_softgpu "$WORK/far/away/program"
}

# The static library inside of somebody's shared one.
# shellcheck disable=SC2046
softgpu_in_plugin() {
    printf '%s\n' '#include <dlfcn.h>' 'int main(int c, char **v) {' \
        'void *p = dlopen(v[c - 1], RTLD_NOW);' 'int (*run)(int, char **);' \
        '*(void **)&run = p ? dlsym(p, "run") : 0;' 'return run ? run(1, v) : 9; }' \
        >"$WORK/host.c" &&
        cc -Dmain=run -fPIC -shared "$HERE/opens_softgpu.c" -o "$WORK/far/plugin.so" \
            $(pkg-config --cflags gpumem) \
            $(pkg-config --static --libs gpumem | sed 's/-lgpumem\b/-l:libgpumem.a/') &&
        cc "$WORK/host.c" -o "$WORK/host" -ldl &&
        printf '#!/bin/sh\nexec "%s" "%s"\n' "$WORK/host" "$WORK/far/plugin.so" >"$WORK/plugged" &&
        chmod +x "$WORK/plugged" && finds_softgpu "$WORK/plugged"
}

# Not by the kernel, which then knows of the loader alone.
started_through_loader() {
    loader=$(readelf -l -W "$WORK/far/away/program" | sed -n 's/.*interpreter: \(.*\)]/\1/p')
    [ -x "$loader" ] && printf '#!/bin/sh\nexec "%s" "%s"\n' "$loader" "$WORK/far/away/program" >"$WORK/started" &&
        chmod +x "$WORK/started" && finds_softgpu "$WORK/started"
}

# With libc in the program too (gcc -static), where a driver would bring a second one. Without the
# run path of pkg-config, with which libc does not start a -static-pie.
wholly_static_is_refused() {
    for kind in -static -static-pie; do
        cc "$kind" -I "$PREFIX/include" "$HERE/opens_softgpu.c" -o "$WORK/whole" "$LIBDIR/libgpumem.a" \
            -pthread -ldl || return 1
        for driver in nvidia softgpu "$LIBDIR/gpumem/softgpu/libsoftgpu.so.0"; do
            "$WORK/whole" "$driver" >"$WORK/said" 2>&1
            cat "$WORK/said"
            grep -q "linked statically" "$WORK/said" || return 1
        done
    done
}

softgpu_by_cmake() {
    finds_softgpu "$WORK/user/build/c_softgpu_static" &&
        finds_softgpu "$WORK/user/build/c_softgpu_gpumem"
}

# What is linked against the install must not meet softgpu's libcuda.so.1 by its name.
no_driver_by_name() {
    ! LD_DEBUG=libs GPUMEM_DRIVER=softgpu "$WORK/far/away/program" 2>&1 |
        grep -F "gpumem/softgpu/libcuda.so.1"
}

build_cmake() {
    rm -rf "$WORK/user" && mkdir "$WORK/user" &&
        cp "$HERE/cmake/CMakeLists.txt" "$HERE"/*.c "$HERE"/*.cc "$WORK/user/" &&
        cp "$HERE/program.c" "$WORK/user/program.cc" &&
        cmake -S "$WORK/user" -B "$WORK/user/build" -G Ninja &&
        cmake --build "$WORK/user/build" &&
        for program in c_gpumem c_static cxx_gpumem cxx_static cxx20_gpumem cxx20_static; do
            "$WORK/user/build/$program" || return 1
        done
}

command_runs() {
    "$PREFIX/bin/gpumem" --version && GPUMEM_DRIVER=softgpu "$PREFIX/bin/gpumem" info
}

# A library of the driver's name on the default loader path would be taken for NVIDIA's.
nothing_on_loader_path() {
    found=$(find "$PREFIX" -name 'libcuda.so*' ! -path '*/gpumem/softgpu/*')
    [ -z "$found" ] || {
        echo "$found"
        return 1
    }
}

no_build_path() {
    if grep -rlF -e "$SOURCE" -e "$BUILD" "$PREFIX" --include='*.pc' --include='*.cmake'; then
        return 1
    fi
}

# Into the configured prefix, as a system's install is: plain paths, or none at all for /usr.
plain_flags() {
    DESTDIR=$WORK/system cmake --install "$BUILD" &&
        file=$(find "$WORK/system" -name gpumem.pc) &&
        flags=$(PKG_CONFIG_PATH=$(dirname "$file") pkg-config --cflags --libs gpumem) &&
        echo "flags: $flags" && case $flags in *..* | *pkgconfig*) return 1 ;; *-lgpumem*) ;; *) return 1 ;; esac
}

# Debug information of an archive names the folders where it was built.
plain_archive() {
    ! readelf -S -W "$LIBDIR/libgpumem.a" | grep -F .debug && ! grep -lF "$SOURCE/" "$LIBDIR/libgpumem.a"
}

licences() {
    for licence in "$SOURCE"/packaging/licences/*.txt "$SOURCE/LICENSE"; do
        grep -qF "$(tail -n 1 "$licence")" "$PREFIX/share/doc/gpumem/copyright" || return 1
    done
    [ -f "$PREFIX/share/doc/gpumem/docs/api-tour.md" ]
}

# A page for the command and for each of its subcommands, in the folder where man looks.
pages() {
    share=$PREFIX/share
    for name in gpumem $("$PREFIX/bin/gpumem" help | sed -n '/^  help /q;s/^  \([a-z-]*\)   *.*/gpumem-\1/p'); do
        grep -q "^\.TH" "$share/man/man1/$name.1" || return 1
    done
    [ "$(find "$share/man" -type f | wc -l)" -gt 5 ] && ! find "$share/man" -type f ! -name 'gpumem*.1' | grep .
}

completions() {
    for file in bash-completion/completions/gpumem zsh/site-functions/_gpumem fish/vendor_completions.d/gpumem.fish; do
        [ -s "$PREFIX/share/$file" ] || return 1
    done
}

cp "$HERE/program.c" "$WORK/program.cc"
check "install" cmake --install "$BUILD" --prefix "$WORK/first"
for place in first moved; do
    [ "$place" = first ] || mv "$WORK/first" "$WORK/moved"
    use_prefix "$WORK/$place"
    check "C program, pkg-config, shared ($place)" build_shared cc "$HERE/program.c"
    check "C++ program, pkg-config, shared ($place)" build_shared c++ "$WORK/program.cc"
    check "C++20 program, pkg-config, shared ($place)" build_shared "c++ -std=c++20" "$HERE/program20.cc"
    check "C program, pkg-config, static ($place)" build_static cc "$HERE/program.c"
    check "C++ program, pkg-config, static ($place)" build_static c++ "$WORK/program.cc"
    check "C++20 program, pkg-config, static ($place)" build_static "c++ -std=c++20" "$HERE/program20.cc"
    check "C and C++ programs, CMake, shared and static ($place)" build_cmake
    check "softgpu is found by a static program, CMake ($place)" softgpu_by_cmake
    check "softgpu is found by a static program, pkg-config ($place)" softgpu_by_pkg_config
    check "softgpu is found by a program that is started through its loader ($place)" started_through_loader
    check "a program that is linked with -static is refused a driver ($place)" wholly_static_is_refused
    check "softgpu is found by a library that holds the static one ($place)" softgpu_in_plugin
    check "softgpu's libcuda.so.1 is not found by its name ($place)" no_driver_by_name
    check "the installed command runs on the installed softgpu ($place)" command_runs
done
check "no libcuda.so on the default loader path" nothing_on_loader_path
check "no path of the build in the package files" no_build_path
check "no debug information in the archive" plain_archive
check "plain flags from pkg-config in the configured prefix" plain_flags
check "licences and pages" licences
check "man pages" pages
check "completions where the shells look" completions
echo "1..$COUNT"
exit $STATUS
