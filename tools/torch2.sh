#!/usr/bin/env bash
# Builds and runs everything that needs libtorch (the adapter, its tests, examples and benchmark)
# with the libtorch in PyPI's wheel of torch, instead of Debian's older one.
#
# Usage: tools/torch2.sh [VERSION]
#
# VERSION: the version of torch, 2.7 or later; by default that of the previous run, at first the
# newest. Needs no GPU and no CUDA toolkit; installs missing Debian packages. Downloads 0.6 GB once.
# Writes only into build-torch2/ of this checkout.
#
# Environment: JOBS (by default the number of CPUs) is the number of parallel compilers; each takes
# 2 GB.
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

say() { printf '\n== %s\n' "$*"; }
fail() {
  printf 'torch2.sh: %s\n' "$*" >&2
  exit 1
}

(($# <= 1)) || fail 'takes one argument at most, a version of torch'
work=build-torch2
build=$work/build
python=$work/venv/bin/python

# Installs packages with pip, which downloads only missing ones. pip's cache is not used, because it
# would take as much space again.
fetch() {
  local said what=${*: -1}
  said=$("$python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
    --retries 1 --timeout 20 "$@" 2>&1) && return
  [[ $said != *'from versions: none'* ]] || fail "PyPI does not answer: no $what"
  fail "no $what from PyPI: ${said##*$'\n'}"
}

# of_torch EXPRESSION: prints information from the wheel. It is not imported, because that would
# need all packages on which it depends.
of_torch() {
  "$python" -c "import importlib.metadata; torch = importlib.metadata.distribution('torch')
print($1)"
}

# The wheel is built for CUDA, of which it needs 3 GB. Its CPU part needs only two of CUDA's
# libraries, in the version that the wheel names.
cuda_parts() {
  of_torch '"\n".join(torch.requires)' |
    sed -nE -e 's/^cuda-toolkit\[[^]]*\](==[0-9.]+).*/cuda-toolkit[cudart,cupti]\1/p' \
      -e 's/^(nvidia-cuda-(runtime|cupti)-cu[0-9]+)[^=]*(==[0-9.]+).*/\1\3/p'
}

say 'packages'
tools/packages.sh g++ cmake ninja-build catch2 libcli11-dev libjpeg-dev zlib1g-dev \
  nlohmann-json3-dev libprotozero-dev libdw-dev libsqlite3-dev libjs-chart.js \
  python3 python3-venv
[[ -x $python ]] || python3 -m venv "$work/venv" || fail 'python3 cannot make a virtual environment'
fetch --no-deps "torch${1:+==$1}"
for part in $(cuda_parts); do
  fetch "$part"
done
version=$(of_torch torch.version)
lib=$(of_torch 'torch.locate_file("torch/lib").resolve()')
echo "torch $version"
! grep -qs CXX11_ABI=0 "${lib%/lib}/share/cmake/Torch/TorchConfig.cmake" ||
  fail "torch $version has the C++ ABI of before g++ 5, and the libraries of this machine have not"

say "building with libtorch $version in $build"
launcher=$(command -v ccache || true)
rm -f "$build/CMakeCache.txt"
cmake -S . -B "$build" -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release \
  "-DCMAKE_PREFIX_PATH=${lib%/lib}/share/cmake" "-DCMAKE_CXX_COMPILER_LAUNCHER=$launcher" \
  -DLOTUS_WITH_TORCH=ON -DLOTUS_WERROR=ON -DLOTUS_TEST_SINGLE_HEADER=OFF ||
  fail "CMake cannot take libtorch $version"
cmake --build "$build" --parallel "${JOBS:-$(nproc)}" --target lotus_with_torch lotus-tool ||
  fail "does not build with libtorch $version"

say 'which libtorch the programs take'
libraries=$(ldd "$build/tests/library/test_torch" | grep -E 'lib(torch|c10)[^ ]*\.so')
echo "$libraries"
[[ $(grep -cF "=> $lib/" <<<"$libraries") == $(wc -l <<<"$libraries") ]] ||
  fail "not only that of $lib"

say "tests with libtorch $version"
ctest --test-dir "$build" -L torch --output-on-failure --no-tests=error ||
  fail "tests fail with libtorch $version"

say "benchmark with libtorch $version"
"$build/bench/lotus_torch_bench" 5 || fail "the benchmark fails with libtorch $version"

say "passed with libtorch $version: $("${CXX:-c++}" --version | head -n 1)"
