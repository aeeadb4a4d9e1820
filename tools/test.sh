#!/usr/bin/env bash
# Installs what is missing (Debian packages), then builds and runs every test of this project:
#   clang++, warnings are errors; AddressSanitizer with UndefinedBehaviorSanitizer; ThreadSanitizer:
#     the tests of the library and of lotus-tool
#   g++ Release: everything, with examples, packaging, formatting, clang-tidy and a short benchmark
# Needs no argument. Writes into build/ and build-*/ of this checkout only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(
  g++ cmake ninja-build pkgconf                                # to build
  catch2 rapidjson-dev clang clang-format clang-tidy           # to test
  libcli11-dev zlib1g-dev libjpeg62-turbo-dev libbenchmark-dev # lotus-tool, examples, benchmarks
)

# step WHAT COMMAND...: runs the command; says what it does and how long that took.
step() {
  local what=$1 began=$SECONDS
  shift
  printf '\n=== %s\n' "$what"
  "$@"
  printf '=== %s: %d s\n' "$what" $((SECONDS - began))
}

# build PRESET FOLDER [OPTION...]
build() {
  local preset=$1
  # An earlier choice of options in the build folder must not leave tests out.
  rm -f "$2/CMakeCache.txt"
  cmake --preset "$preset" "${@:3}"
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
# Large, and only the tests of lotus/torch.hpp need it: those are left out where it cannot be had.
step 'install libtorch' tools/packages.sh libtorch-dev || echo 'libtorch cannot be installed'
for preset in clang asan-ubsan; do
  step "build, $preset" build "$preset" "build-$preset"
  step "test, $preset" ctest --preset "$preset"
done
step 'build, tsan' build tsan build-tsan
step 'test, tsan' "${fixed_addresses[@]}" ctest --preset tsan
step 'build, g++ Release' build default build -DLOTUS_WITH_TORCH=ON
# Last, so that the summary of the largest run ends the output.
step 'test, g++ Release' ctest --preset default
