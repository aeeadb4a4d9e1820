#!/usr/bin/env bash
# Builds the files of a release, for x86-64 and aarch64, in dist/ of this checkout, which must not exist:
#   lotus-tool-VERSION-linux-MACHINE   the tool, linked statically: it runs with any C library
#   lotus_VERSION_MACHINE.deb          headers, library, tool, manual page, completions
#   lotus_tool-VERSION-….whl           a Python wheel that contains the tool
#   lotus-VERSION.hpp                  the single header
#   SHA256SUMS
# Runs each tool on the recordings of tests/samples; the one for aarch64 with qemu.
# With --check, builds everything once more, in another folder and without ccache, and compares the bytes.
# Runs on x86-64. Needs the packages of tools/test.sh for lotus-tool, dpkg-dev, g++-aarch64-linux-gnu,
# qemu-user-static, and python3.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

check=no
case ${1-} in
  '') ;;
  --check) check=yes ;;
  *)
    echo "usage: tools/release.sh [--check]" >&2
    exit 2
    ;;
esac

version=$(sed -nE 's/^#define LOTUS_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+).*/\2/p' include/lotus/version.hpp |
  paste -sd .)
if ! grep -q "^## $version\$" docs/changelog.md; then
  echo "docs/changelog.md has no section '## $version'" >&2
  exit 1
fi
dist=$PWD/dist
if [[ -e $dist ]]; then
  echo "$dist exists already" >&2
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake "-DCURRENT=$PWD/single_include/lotus/lotus.hpp" "-DOUTPUT=$work/lotus.hpp" -P tools/cmake/amalgamate.cmake
root=$PWD/build-release-arm64-root
[[ -e $root/usr ]] || tools/release/arm64_root.sh "$root"
# The files must not contain the time of the build, so that a second build gives the same bytes.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
max_bytes=12000000

# build MACHINE BUILD DIST: builds the files for one machine in BUILD, and copies them to DIST.
build() {
  local machine=$1 build=$2 dist=$3 needed
  local tool=$dist/lotus-tool-$version-linux-$machine cross=() strip=strip
  # They must not contain the path of the checkout or of the build folder either.
  local places="-ffile-prefix-map=$PWD=. -ffile-prefix-map=$build=build"
  if [[ $machine == aarch64 ]]; then
    places+=" -ffile-prefix-map=$root=root"
    cross=(-DCMAKE_TOOLCHAIN_FILE=tools/cmake/aarch64.cmake "-DLOTUS_ARM64_ROOT=$root")
    strip=aarch64-linux-gnu-strip
  fi
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLOTUS_STATIC_TOOL=ON \
    -DLOTUS_BUILD_TESTS=OFF -DLOTUS_BUILD_BENCH=OFF -DLOTUS_BUILD_EXAMPLES=OFF \
    -DLOTUS_LEAVE_OUT_NOTHING=ON "-DCMAKE_CXX_FLAGS=$places" "${cross[@]}" >/dev/null
  cmake --build "$build"
  mkdir -p "$dist"
  "$strip" -o "$tool" "$build/bin/lotus-tool"
  (cd "$build" && cpack -B "$build/package" >/dev/null)
  cp "$build"/package/*.deb "$dist"
  # The version of glibc that is needed must not be newer than the one that the packages name.
  needed=$(find "$build" -name liblotus_memory.so -not -path '*/package/*' -exec readelf --version-info {} + |
    grep -o 'GLIBC_2[.0-9]*' | sort --version-sort | tail -1)
  if [[ $(printf '%s\n' "$needed" GLIBC_2.34 | sort --version-sort | tail -1) != GLIBC_2.34 ]]; then
    echo "the package for $machine needs $needed, but names 2.34" >&2
    exit 1
  fi
  python3 tools/release/wheel.py "$tool" "$version" "$machine" LICENSE "$dist" >/dev/null
}

# try MACHINE DIST: checks that the tool is static and small, and that it prints the same text as
# the tool for x86-64. JSON is not compared, because its last digits depend on the machine's
# instructions.
try() {
  local machine=$1 tool=$2/lotus-tool-$version-linux-$1 emulator=() bytes sample
  [[ $machine == "$(uname -m)" ]] || emulator=("qemu-$machine-static")
  bytes=$(stat --format=%s "$tool")
  if ((bytes > max_bytes)); then
    echo "$tool has $bytes bytes, more than $max_bytes" >&2
    exit 1
  fi
  if readelf --program-headers "$tool" | grep -q INTERP; then
    echo "$tool is not linked statically" >&2
    exit 1
  fi
  [[ $("${emulator[@]}" "$tool" --version) == "lotus-tool $version" ]]
  for sample in tests/samples/*/{text,compact}; do
    "${emulator[@]}" "$tool" diagnose "$sample" --details
    "${emulator[@]}" "$tool" stats "$sample" --wide
    "${emulator[@]}" "$tool" whatif "$sample"
    "${emulator[@]}" "$tool" report "$sample" -o "$work/report.html" >/dev/null
  done >"$work/answers-$machine"
  cmp "$work"/answers-{x86_64,"$machine"}
}

# release BUILD DIST: builds and checks all files of a release.
release() {
  build x86_64 "$1" "$2"
  try x86_64 "$2"
  build aarch64 "$1-aarch64" "$2"
  try aarch64 "$2"
  cp single_include/lotus/lotus.hpp "$2/lotus-$version.hpp"
  (cd "$2" && LC_ALL=C sha256sum -- * >SHA256SUMS)
}

release "$PWD/build-release" "$dist"
if [[ $check == yes ]]; then
  CCACHE_DISABLE=1 release "$work/build" "$work/dist"
  diff "$dist/SHA256SUMS" "$work/dist/SHA256SUMS"
  echo "both builds gave the same bytes"
fi
cat "$dist/SHA256SUMS"
