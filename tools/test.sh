#!/usr/bin/env bash
# Installs what is missing (Debian packages), then builds and runs every test of this project:
#   the tests of the library and of lotus-tool with clang++, with AddressSanitizer and
#   UndefinedBehaviorSanitizer, and with ThreadSanitizer; then everything with g++: examples,
#   packaging, formatting, clang-tidy, and the benchmarks once.
# Needs no argument. Writes into build/ and build-*/ of this checkout only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(
  g++ cmake ninja-build pkgconf
  libcli11-dev zlib1g-dev rapidjson-dev libprotozero-dev libdw-dev libjs-chart.js    # lotus-tool
  protobuf-compiler chromium linux-perf valgrind                                     # its tests
  catch2 clang libclang-rt-dev clang-format clang-tidy                               # tests
  libjpeg-dev libbenchmark-dev                                                       # the others
)

# step WHAT COMMAND...: runs the command; says what it does and how long that took.
step() {
  local what=$1 began=$SECONDS
  shift
  printf '\n=== %s\n' "$what"
  "$@"
  printf '=== %s: %d s\n' "$what" $((SECONDS - began))
}

# Large, and not to be had everywhere: then what needs it is left out.
install_torch() {
  torch=ON
  tools/packages.sh libtorch-dev || torch=OFF
}

# build PRESET FOLDER [OPTION...]
build() {
  local preset=$1
  # An earlier choice of options in the build folder must not leave tests out.
  rm -f "$2/CMakeCache.txt"
  cmake --preset "$preset" -DLOTUS_LEAVE_OUT_NOTHING=ON "${@:3}"
  cmake --build --preset "$preset"
}

if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
# g++ 12's ThreadSanitizer does not start where addresses are spread as widely as new kernels do.
fixed_addresses=()
if setarch -R true 2>/dev/null; then
  fixed_addresses=(setarch -R)
fi

step 'install missing packages' tools/packages.sh "${packages[@]}"
step 'install libtorch' install_torch
for preset in clang asan-ubsan; do
  step "build, $preset" build "$preset" "build-$preset"
  step "test, $preset" ctest --preset "$preset"
done
step 'build, tsan' build tsan build-tsan
step 'test, tsan' "${fixed_addresses[@]}" ctest --preset tsan
step 'build, g++ Release' build default build "-DLOTUS_WITH_TORCH=$torch"
# Last, so that the summary of the largest run ends the output.
step 'test, g++ Release' ctest --preset default
