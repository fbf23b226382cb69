#!/bin/sh
# packaging/make.sh DIST BUILD: the Debian package, of what the release build in the folder BUILD has made, and
# the wheels, which scikit-build-core builds in a folder of its own (pyproject.toml). Needs cpack, dpkg-dev and a
# virtual environment with scikit-build-core and wheel; exit status 77 when these can be had from nowhere: the
# Debian package is made then, the wheels are not.
set -eu

cd "$(dirname "$0")/.."
usage='usage: packaging/make.sh DIST BUILD'
mkdir -p "${1:?$usage}"
dist=$(cd "$1" && pwd)
build=$(cd "${2:?$usage}" && pwd)
work=$build/package
tree=$work/tree
share=$tree/usr/share
mkdir -p "$work"

version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
description=$(sed -n 's/^CMAKE_PROJECT_DESCRIPTION:STATIC=//p' "$build/CMakeCache.txt")

# What an installation by hand has, under /usr.
rm -rf "$tree"
DESTDIR=$tree cmake --install "$build" --prefix /usr --strip >/dev/null

# What Debian's packages have otherwise: plain flags from pkg-config, compressed man pages and changelog,
# zsh's functions in a folder of the packages' own.
sed -i 's|^prefix=.*|prefix=/usr|' "$tree"/usr/lib/pkgconfig/*.pc
gzip -9nf "$share"/man/man1/*.1
mv "$share/zsh/site-functions" "$share/zsh/vendor-completions"
python3 packaging/changelog.py . "$share/doc/gpumem/changelog.gz"

# The same bytes whenever it is made: of a commit's time, where one is given.
if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then
    find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
fi

rm -f "$dist"/gpumem_*.deb "$dist"/gpumem-*.whl "$dist"/vkgdr-*.whl
cpack --config packaging/deb.cmake -B "$dist" -D CPACK_PACKAGE_VERSION="$version" \
    -D CPACK_PACKAGE_DESCRIPTION_SUMMARY="$description" -D CPACK_INSTALLED_DIRECTORIES="$tree;/"
rm -rf "$dist/_CPack_Packages"

if [ -n "${GPUMEM_WITHOUT_WHEELS:-}" ]; then
    echo "make.sh: no wheel is made: GPUMEM_WITHOUT_WHEELS is set" >&2
    exit 77
fi
[ -x "$work/venv/bin/python" ] || python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check scikit-build-core wheel || {
    echo "make.sh: no wheel is made: pip has no package for it" >&2
    exit 77
}
CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(getconf _NPROCESSORS_ONLN)}
export CMAKE_BUILD_PARALLEL_LEVEL
"$work/venv/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
    --config-settings=build-dir="$work/wheel" --wheel-dir "$dist" .
"$work/venv/bin/python" packaging/wheel.py "$dist"
