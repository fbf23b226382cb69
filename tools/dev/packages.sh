# shellcheck shell=sh
# Debian packages, by what needs them. Sourced by ./dev.

# What a Debian 12 machine with nothing but git lacks. Recommended packages are not installed, so
# libc6-dev (which gcc only recommends) is named.
PACKAGES_BUILD="gcc libc6-dev cmake ninja-build libcmocka-dev libinih-dev liblz4-dev libxxhash-dev libvulkan-dev libzstd-dev zlib1g-dev"
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

# need PACKAGE...: installs what is missing, or prints the lines that would and ends with status 2.
need() {
    command -v dpkg-query >/dev/null 2>&1 || return 0
    missing=
    for package in "$@"; do
        case " $missing " in *" $package "*) continue ;; esac
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
        [ "$state" = installed ] || missing="$missing $package"
    done
    [ -n "$missing" ] || return 0

    line="apt-get install -y --no-install-recommends$missing"
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        as_root=sudo
    else
        lack "packages are missing, and installing them needs root. Run:
  sudo apt-get update
  sudo $line"
    fi
    say "installing:$missing"
    log=$(mktemp)
    # shellcheck disable=SC2086  # the line is a list of words
    if $as_root env DEBIAN_FRONTEND=noninteractive apt-get update >"$log" 2>&1 &&
        $as_root env DEBIAN_FRONTEND=noninteractive $line >>"$log" 2>&1; then
        rm -f "$log"
        return 0
    fi
    tail -n 15 "$log" >&2
    rm -f "$log"
    lack "installing packages failed; the lines were:
  apt-get update
  $line"
}

# packages_of WHAT: what it needs, each package perhaps more than once.
packages_of() {
    case $1 in
    nothing) echo python3 ;;
    build) echo "$PACKAGES_BUILD" ;;
    test) echo "$PACKAGES_BUILD $PACKAGES_TEST" ;;
    clients) echo "$PACKAGES_BUILD $PACKAGES_CLIENTS" ;;
    lint) echo "$PACKAGES_BUILD $PACKAGES_LINT" ;;
    format) echo "clang-format" ;;
    api) echo "python3-clang clang-format" ;;
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
