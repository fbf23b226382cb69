#!/bin/sh
# packaging/make.sh DIST: the Debian package and the wheels, of a release build of their own without
# tests. Needs cpack, dpkg-dev and a virtual environment with the wheel package; exit status 77 when
# that can be had from nowhere: the Debian package is made then, the wheels are not.
set -eu

cd "$(dirname "$0")/.."
dist=${1:?usage: packaging/make.sh DIST}
build=build/package
mkdir -p "$dist"
dist=$(cd "$dist" && pwd)

# lib and not the multiarch folder: programs and libraries find one another by $ORIGIN.
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr \
    -DCMAKE_INSTALL_LIBDIR=lib -DGPUMEM_TESTS=OFF -DGPUMEM_BENCH=OFF -DGPUMEM_EXAMPLES=OFF \
    -DGPUMEM_PACKAGE=ON
cmake --build "$build"
rm -f "$dist"/gpumem_*.deb "$dist"/gpumem-*.whl "$dist"/vkgdr-*.whl
cpack --config "$build/CPackConfig.cmake" -B "$dist"
rm -rf "$dist/_CPack_Packages"

tree=$build/tree
rm -rf "$tree"
DESTDIR=$(pwd)/$tree cmake --install "$build" --strip >/dev/null
[ -x "$build/venv/bin/python" ] || python3 -m venv "$build/venv"
"$build/venv/bin/python" -m pip install --quiet --disable-pip-version-check wheel || {
    echo "make.sh: no wheel is made: pip has no package for it" >&2
    exit 77
}
"$build/venv/bin/python" packaging/wheel.py "$tree/usr" "$dist"
