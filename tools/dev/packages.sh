# shellcheck shell=sh
# What the commands need, by Debian's packages. Sourced by ./dev.

# Recommended packages are not installed, so libc6-dev (which gcc only recommends) is named.
PACKAGES_BASE="gcc libc6-dev cmake ninja-build"
# What is missing of these is off in the build, and stops nothing: cmake/GpumemDependencies.cmake.
PACKAGES_EXTRA="liblz4-dev libvulkan-dev libzstd-dev zlib1g-dev"
PACKAGES_BUILD="$PACKAGES_BASE $PACKAGES_EXTRA libcmocka-dev"
# Tests in C++ are built where g++ is. The rest of those that compile skip where clang is missing.
PACKAGES_TEST="python3 python3-dev g++"
PACKAGES_LINT="python3 clang clang-format clang-tidy cppcheck shellcheck"
# clang only recommends its runtime libraries.
PACKAGES_FUZZ="python3 clang libclang-rt-dev"
# pycuda is built from source; vkgdr needs a Vulkan driver.
PACKAGES_CLIENTS="python3 python3-venv python3-dev g++ libvulkan1 mesa-vulkan-drivers"
# tests/cli/test_map_browser.py skips without it.
PACKAGES_BROWSER="python3 chromium"
PACKAGES_PACKAGE="dpkg-dev binutils file python3 python3-venv"
# Of ./dev test --all alone: programs built against an install, NVIDIA's headers, a Vulkan driver, readers
# of man pages, shells that complete.
PACKAGES_ALL="python3-clang pkg-config meson python3-pip mesa-vulkan-drivers mandoc groff bash zsh fish"

OLDEST_CMAKE=3.22

header() {
    echo "#include <$1>" | "${CC:-cc}" -E -x c - >/dev/null 2>&1
}

# cmake_is_new_enough: of 'cmake version 3.25.1', 3.22 or later. One that does not say is taken.
cmake_is_new_enough() {
    cmake --version 2>/dev/null | awk -v oldest="$OLDEST_CMAKE" '
        NR == 1 && $3 ~ /^[0-9]+\.[0-9]+/ {
            split($3, is, "."); split(oldest, least, ".")
            old = is[1] < least[1] || (is[1] == least[1] && is[2] + 0 < least[2] + 0)
        }
        END { exit old }'
}

# has PACKAGE: whether what it brings is here, from wherever: a command or a header. dpkg is asked of the
# rest alone; without it they are taken to be here.
has() {
    case $1 in
    gcc) command -v "${CC:-cc}" >/dev/null ;;
    libc6-dev) ! command -v "${CC:-cc}" >/dev/null || header stdlib.h ;;
    cmake) command -v cmake >/dev/null && cmake_is_new_enough ;;
    ninja-build) command -v ninja >/dev/null ;;
    libcmocka-dev) header cmocka.h ;;
    liblz4-dev) header lz4.h ;;
    libvulkan-dev) header vulkan/vulkan_core.h ;;
    libzstd-dev) header zstd.h ;;
    zlib1g-dev) header zlib.h ;;
    binutils) command -v readelf >/dev/null ;;
    python3 | g++ | clang | clang-format | clang-tidy | cppcheck | shellcheck | file | chromium | \
        pkg-config | meson | mandoc | groff | bash | zsh | fish) command -v "$1" >/dev/null ;;
    *)
        command -v dpkg-query >/dev/null || return 0
        state=$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null || true)
        [ "$state" = installed ]
        ;;
    esac 2>/dev/null
}

# missing_of PACKAGE...: those of them that are not here, once each.
missing_of() {
    missing=
    for package in "$@"; do
        case " $missing " in *" $package "*) continue ;; esac
        has "$package" || missing="$missing $package"
    done
    echo "$missing"
}

# as_root: sets AS_ROOT to what is written in front of a command for root; fails where nothing can be installed.
as_root() {
    command -v apt-get >/dev/null 2>&1 || return 1
    if [ "$(id -u)" = 0 ]; then
        AS_ROOT=
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        AS_ROOT=sudo
    else
        return 1
    fi
}

# install_lines PACKAGES: what somebody may type.
install_lines() {
    if command -v apt-get >/dev/null 2>&1; then
        say "  sudo apt-get update
  sudo apt-get install -y --no-install-recommends$1"
        return
    fi
    say "  Debian and Ubuntu:$1
  Fedora (not tried): sudo dnf install gcc cmake ninja-build libcmocka-devel lz4-devel libzstd-devel zlib-devel vulkan-headers
  Arch (not tried): sudo pacman -S gcc cmake ninja cmocka lz4 zstd zlib vulkan-headers"
}

# install PACKAGES: as root; the end of what apt-get says is in the file $INSTALL_LOG when that fails.
install() {
    say "installing:$1"
    INSTALL_LOG=$(mktemp)
    # shellcheck disable=SC2086  # a list of words
    $AS_ROOT env DEBIAN_FRONTEND=noninteractive apt-get update >"$INSTALL_LOG" 2>&1 &&
        $AS_ROOT env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $1 >>"$INSTALL_LOG" 2>&1
}

# need PACKAGE...: installs what is missing, or prints the lines that would and ends with status 2.
need() {
    absent=$(missing_of "$@")
    [ -n "$absent" ] || return 0
    as_root || lack "packages are missing, and installing them needs root. Run:
$(install_lines "$absent")"
    if install "$absent"; then
        rm -f "$INSTALL_LOG"
        return 0
    fi
    tail -n 15 "$INSTALL_LOG" >&2
    rm -f "$INSTALL_LOG"
    lack "installing packages failed; the lines were:
$(install_lines "$absent")"
}

# need_a_build: of what builds the product, a compiler, CMake, and ninja or make. The rest comes with them, or
# what needs it is off.
need_a_build() {
    base=$(missing_of gcc libc6-dev cmake)
    has ninja-build || command -v make >/dev/null 2>&1 || base="$base ninja-build"
    # shellcheck disable=SC2086  # a list of words
    extra=$(missing_of $PACKAGES_EXTRA)
    [ -n "$base$extra" ] || return 0
    if [ -n "$base" ]; then
        # shellcheck disable=SC2086  # likewise
        need $base $extra
        return
    fi
    # Not installed by the way: without a network apt-get takes minutes to say so.
    say "without$extra, what needs these is off (gpumem doctor lists it). They are had by:
$(install_lines "$extra")"
}

# packages_of WHAT: what it needs, each package perhaps more than once.
packages_of() {
    case $1 in
    nothing) echo python3 ;;
    build) echo "$PACKAGES_BASE $PACKAGES_EXTRA" ;;
    test) echo "$PACKAGES_BUILD $PACKAGES_TEST" ;;
    clients) echo "$PACKAGES_BUILD $PACKAGES_CLIENTS" ;;
    lint) echo "$PACKAGES_BUILD $PACKAGES_LINT" ;;
    format) echo "clang-format" ;;
    api) echo "python3-clang clang-format" ;;
    docs) echo "python3" ;;
    fuzz) echo "$PACKAGES_BUILD $PACKAGES_FUZZ" ;;
    package) echo "$PACKAGES_BUILD $PACKAGES_PACKAGE" ;;
    browser) echo "$PACKAGES_BUILD $PACKAGES_BROWSER" ;;
    all)
        echo "$PACKAGES_BUILD $PACKAGES_TEST $PACKAGES_LINT $PACKAGES_FUZZ $PACKAGES_CLIENTS" \
            "$PACKAGES_PACKAGE $PACKAGES_ALL"
        ;;
    esac
}

need_for() {
    # shellcheck disable=SC2046
    need $(packages_of "$1")
}
