#!/usr/bin/env bash
# Installs missing packages (from Debian; DuckDB and Spark from PyPI), then builds and runs every
# test of this project:
#   the tests of the library and of lotus-tool with the newest clang++, AddressSanitizer and
#   UndefinedBehaviorSanitizer; those with threads with ThreadSanitizer; the library's for aarch64,
#   under qemu; then everything with g++: examples, packaging, the API reference, formatting,
#   clang-tidy, and the benchmarks once.
# Needs no argument. Writes into build/ and build-*/ of this checkout only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(
  g++ cmake ninja-build pkgconf
  libcli11-dev zlib1g-dev nlohmann-json3-dev libprotozero-dev libdw-dev libjs-chart.js    # lotus-tool
  libsqlite3-dev                                                                          # lotus-tool
  protobuf-compiler chromium linux-perf valgrind                                          # tests of lotus-tool
  groff-base zsh fish sqlite3 python3 dpkg-dev tmux node-typescript                       # tests of lotus-tool
  heaptrack zstd libjemalloc-dev libgoogle-perftools-dev                                  # tests of lotus-tool
  catch2 clang libclang-rt-dev clang-format clang-tidy doxygen                            # all tests
  g++-riscv64-linux-gnu g++-mingw-w64-x86-64 qemu-user-static                             # tests of packaging
  libjpeg-dev libbenchmark-dev                                                            # examples, benchmarks
  libtbb-dev libavcodec-dev libavformat-dev libswscale-dev                                # examples
)

# step WHAT COMMAND...: prints what it does, runs the command, and prints how long it took.
step() {
  local what=$1 began=$SECONDS status=0
  shift
  printf '\n=== %s\n' "$what"
  "$@" || status=$?
  printf '=== %s: %d s\n' "$what" $((SECONDS - began))
  return $status
}

# Installs the newest clang, for the preset asan-ubsan and for clang-tidy.
install_newest_clang() {
  local newest
  newest=$(apt-cache pkgnames clang- 2>/dev/null | grep -Ex 'clang-[0-9]+' | sort -V | tail -n 1) ||
    return 0
  tools/packages.sh "$newest" "libclang-rt-${newest#clang-}-dev" "clang-tidy-${newest#clang-}" \
    "lld-${newest#clang-}"
}

# Installs libtorch, which is large and not available everywhere. Without it, the targets that need
# it are left out.
install_torch() {
  torch=ON
  tools/packages.sh libtorch-dev || torch=OFF
}

# Optional, like install_torch.
install_opencv() {
  opencv=ON
  tools/packages.sh libopencv-dev || opencv=OFF
}

# Optional, like install_torch.
install_engines() {
  { tools/packages.sh default-jre-headless python3-venv && tools/engines.sh; } ||
    echo 'DuckDB or Spark cannot be installed: what is asked of them is skipped'
}

# Optional, like install_torch.
install_aarch64() {
  aarch64=ON
  tools/packages.sh g++-aarch64-linux-gnu || aarch64=OFF
}

# Optional, like install_torch. The package g++-multilib would remove the cross compilers.
install_32_bits() {
  tools/packages.sh "g++-$(g++ -dumpversion | cut -d. -f1)-multilib" ||
    echo 'no libraries for 32 bits: the test portable_to_32_bits is skipped'
}

# A failing test of one preset must not hide failures of the next one.
failed=()
run_tests() {
  local preset=$1
  step "test, $preset" "${@:2}" ctest --preset "$preset" || failed+=("$preset")
}

# build PRESET FOLDER [OPTION...]: configures and builds a preset.
build() {
  local preset=$1
  # An earlier choice of options in the build folder must not leave tests out.
  rm -f "$2/CMakeCache.txt"
  cmake --preset "$preset" -DLOTUS_LEAVE_OUT_NOTHING=ON "${@:3}" &&
    cmake --build --preset "$preset"
}

if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
# ThreadSanitizer of g++ 12 does not start if address space randomization uses as many bits as in
# new kernels.
fixed_addresses=()
if setarch -R true 2>/dev/null; then
  fixed_addresses=(setarch -R)
fi

step 'install missing packages' tools/packages.sh "${packages[@]}"
step 'install the newest clang' install_newest_clang
step 'install libtorch' install_torch
step 'install OpenCV' install_opencv
step 'install the aarch64 compiler' install_aarch64
step 'install libraries for 32 bits' install_32_bits
step 'install DuckDB and Spark' install_engines
step 'build, asan-ubsan' build asan-ubsan build-asan-ubsan
run_tests asan-ubsan
step 'build, tsan' build tsan build-tsan
run_tests tsan "${fixed_addresses[@]}"
if [[ $aarch64 == ON ]]; then
  step 'build, aarch64' build aarch64 build-aarch64
  run_tests aarch64
else
  echo 'aarch64 is left out: its compiler or its emulator cannot be installed'
fi
step 'build, g++ Release' build default build \
  "-DLOTUS_WITH_TORCH=$torch" "-DLOTUS_WITH_OPENCV=$opencv"
# The largest run comes last, so that its summary ends the output.
run_tests default
if ((${#failed[@]})); then
  echo "=== tests failed in: ${failed[*]}"
  exit 1
fi
