#!/usr/bin/env bash
# Installs what is missing (Debian), then builds and runs tests. Writes only below build/ and build-*/.
#
# Usage: tools/test.sh [-v] [--again] [--all | --only PART...]
#
#   (nothing)       the part `tests`, for every day. What has passed is not run again as long as its programs, scripts and
#                   data are the same
#   --all           all parts but `tests`, whose tests are also in `release`: what CI runs
#   --only PART...  the named parts
#   --again         all tests of the part, whatever has passed
#   -v              shows the builds and the tests as they run
#   --help          this, and the parts
#
# Which tests a part runs is written in their labels (tests/README.md) and in CMakePresets.json: `release` runs all but those
# of the parts below it, and not what `asan` fuzzes, if that runs too; `asan` all that run code of this project and do not
# measure it, but not examples and packages; `tsan` and `aarch64` those that CMakePresets.json names. The library's tests are
# in all four.
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
. tools/progress.sh

# NAME|minutes on 2 CPUs, alone, with all packages installed|what|what it installs
tool=(g++ cmake ninja-build libcli11-dev zlib1g-dev nlohmann-json3-dev libprotozero-dev libdw-dev libsqlite3-dev
  libjs-chart.js)
tests=("${tool[@]}" catch2 libjpeg-dev python3 protobuf-compiler sqlite3 tmux)
optimized=(pkgconf linux-perf valgrind groff-base zsh fish dpkg-dev heaptrack zstd libjemalloc-dev
  libgoogle-perftools-dev libtbb-dev libavcodec-dev libavformat-dev libswscale-dev libopencv-dev)
parts=(
  "tests|8|the library and lotus-tool, hardly optimized: killed processes, forks, full disks, README's commands|${tests[*]}"
  "release|14|the same with g++ -O3, all examples and documents, the single header|${optimized[*]}"
  "asan|12|the newest clang++ with AddressSanitizer and UndefinedBehaviorSanitizer; fuzzers|clang clang-N libclang-rt-N-dev lld-N"
  "tsan|4|what has threads, with ThreadSanitizer|"
  "aarch64|2|the library for aarch64, in an emulator|g++-aarch64-linux-gnu qemu-user-static"
  "packaging|3|installing, each header alone, other compilers and machines|g++-riscv64-linux-gnu g++-mingw-w64-x86-64 g++-N-multilib"
  "engines|2|programs of others read what lotus-tool writes|default-jre-headless python3-venv; from PyPI: DuckDB, Spark, Meson and others (tools/engines.sh)"
  "browser|2|the report's page in a browser|chromium"
  "libtorch|3|the adapter and the examples for libtorch|libtorch-dev"
  "lint|5|formatting, clang-tidy, the API reference|clang-format-14 clang-tidy-N doxygen node-typescript"
  "bench|1|each benchmark once|libbenchmark-dev"
)
names() { printf '%s\n' "${parts[@]%%|*}"; }

usage() {
  sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
  local part name minutes what packages
  printf '\n  %-10s %7s  %s\n' part minutes 'what (and what it installs, beyond the packages of tests)'
  for part in "${parts[@]}"; do
    IFS='|' read -r name minutes what packages <<<"$part"
    printf '  %-10s %7s  %s%s\n' "$name" "$minutes" "$what" "${packages:+ ($packages)}"
  done
}

chosen=() again=
while (($#)); do
  case $1 in
    -v) progress_verbose=1 ;;
    --again) again=1 ;;
    --all) mapfile -t chosen < <(names | grep -vx tests) ;;
    --only)
      while (($# > 1)) && [[ $2 != -* ]]; do
        names | grep -qx -- "$2" || { echo "test.sh: no part is called '$2'; they are: $(names | xargs)" >&2; exit 2; }
        chosen+=("$2")
        shift
      done
      ((${#chosen[@]})) || { echo 'test.sh: --only needs the name of a part' >&2; exit 2; } ;;
    -h | --help) usage; exit ;;
    *) echo "test.sh: '$1' is not an option; see tools/test.sh --help" >&2; exit 2 ;;
  esac
  shift
done
((${#chosen[@]})) || chosen=(tests)
has() { [[ " ${chosen[*]} " == *" $1 "* ]]; }

# What could not be installed, `PART (why)`, and the parts that cannot be run without it.
left_out=() unable=()

# need PART PACKAGE...: installs what a part needs. What cannot be installed is left out, and the status is 1.
need() {
  local part=$1 package status=0
  shift
  tools/packages.sh "$@" && return
  for package in "$@"; do
    tools/packages.sh "$package" || { left_out+=("$part ($package cannot be installed)") && status=1; }
  done
  return $status
}

# The newest version of a package whose name ends with a number.
newest() { apt-cache pkgnames "$1" 2>/dev/null | grep -Ex "$1[0-9]+" | sort -V | tail -n 1 | grep -oE '[0-9]+$' || true; }

install_packages() {
  local clang=
  tools/packages.sh "${tests[@]}"
  if has release; then need 'a part of release' "${optimized[@]}" || true; fi
  if has asan || has lint; then
    need asan clang libclang-rt-dev || true
    clang=$(newest clang-)
  fi
  if has asan; then need 'the newest clang++' "clang-$clang" "libclang-rt-$clang-dev" "lld-$clang" || true; fi
  if has lint; then
    need 'a part of lint' clang-format-14 doxygen node-typescript || true
    need 'clang-tidy' "clang-$clang" "clang-tidy-$clang" || true
  fi
  if has aarch64; then need aarch64 g++-aarch64-linux-gnu qemu-user-static || unable+=(aarch64); fi
  if has packaging; then
    need 'a part of packaging' pkgconf dpkg-dev g++-riscv64-linux-gnu g++-mingw-w64-x86-64 qemu-user-static || true
    # The package g++-multilib would remove the cross compilers.
    need '32 bits in packaging' "g++-$(g++ -dumpversion | cut -d. -f1)-multilib" || true
  fi
  if has engines; then
    need engines default-jre-headless python3-venv || true
    tools/engines.sh || left_out+=('a part of engines (PyPI does not have it)')
  fi
  if has browser; then need browser chromium || unable+=(browser); fi
  if has bench; then need bench libbenchmark-dev || unable+=(bench); fi
  if has libtorch; then need libtorch libtorch-dev || unable+=(libtorch); fi
}

results=()

# build WHAT PRESET SECONDS [CMAKE_OPTION...]: configures and builds a preset. A failure is a failed test, and does not
# hide what fails after it.
build() {
  local what=$1 preset=$2 seconds=$3
  shift 3
  progress_log=build/test/$what-build.log
  progress_step "$what, build" "$seconds" configure_and_build "$preset" "$@" || { results+=("no build") && return 1; }
}
configure_and_build() {
  cmake --preset "$@" && cmake --build --preset "$1" "${targets[@]}"
}

# run_tests WHAT PRESET SECONDS [CTEST_OPTION...]: runs tests of a build.
unchanged=0
run_tests() {
  local what=$1 preset=$2 seconds=$3 folder=build-$2 choice first='' others='' only=() more=1
  shift 3
  # Tests of the part tests sleep for a third of their time or more.
  [[ $what != tests ]] || more=2
  [[ $preset != default ]] || folder=build
  [[ $what != tests || -n $again ]] || only=(--unchanged)
  if [[ $preset != @(tsan|aarch64) ]]; then
    choice=$(python3 -B tools/tests_to_run.py choose "$folder" "${only[@]}" --preset "$preset" "$@") ||
      { results+=("no choice") && return 1; }
    { read -r first; read -r others; read -r unchanged; } <<<"$choice"
    # Tests that need the CPUs for themselves, one after the other, and beside them tests that sleep.
    [[ -z $first ]] || ctest_step "$what, tests alone" "$what-alone" "$folder" $((seconds / 3)) 3 "$preset" "$@" -R "$first"
    # The folder of JSON outputs must not be emptied again.
    [[ -z $others ]] || ctest_step "$what, tests" "$what" "$folder" $((seconds * 2 / 3)) $more "$preset" "$@" -R "$others" \
      -FS '^empty_json_outputs$'
    [[ $what != tests ]] || python3 -B tools/tests_to_run.py passed "$folder" "${results[@]}"
  else
    ctest_step "$what, tests" "$what" "$folder" "$seconds" 1 "$preset" "$@"
  fi
}
# ctest_step TEXT RESULT FOLDER SECONDS MORE PRESET [CTEST_OPTION...]: runs as many tests at once as there are CPUs, and MORE.
# If only tests failed that other programs may have disturbed, runs these once more, alone.
ctest_step() {
  local text=$1 folder=$3 seconds=$4 more=$5 file=$PWD/build/test/$2.xml disturbed
  progress_log=build/test/$2-tests.log
  shift 5
  rm -f "$file" "$file.again"
  results+=("$file")
  ! progress_step "$text" "$seconds" ctest_of_preset "$more" "$@" --output-junit "$file" || return 0
  python3 tools/test_results.py failures "$folder" "$file"
  disturbed=$(python3 tools/test_results.py disturbed "$folder" "$file")
  [[ -z $disturbed ]] || progress_step "$text, again" 60 ctest_of_preset $((1 - $(nproc))) "$1" \
    -R "$disturbed" --output-junit "$file.again" || true
}
# ThreadSanitizer of g++ 12 does not start if addresses are as random as in new kernels.
ctest_of_preset() {
  local fixed=() more=$1
  shift
  [[ $1 != tsan ]] || ! setarch -R true 2>/dev/null || fixed=(setarch -R)
  "${fixed[@]}" ctest --preset "$@" --parallel "$(($(nproc) + more))"
}

# The expected seconds are those of two CPUs.
seconds() { echo $(($1 * 2 / ($(nproc) > 2 ? $(nproc) : 2) + 1)); }
can_run() {
  has "$1" && [[ " ${unable[*]} " != *" $1 "* ]]
}
targets=()
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
mkdir -p build/test
for part in "${parts[@]}"; do
  IFS='|' read -r name minutes _ <<<"$part"
  ! has "$name" || ((progress_expected += $(seconds $((minutes * 60)))))
done

tools/packages.sh --permission "${tests[@]}"
progress_log=build/test/packages.log
progress_step 'packages' 60 install_packages

if can_run tests; then
  build tests check "$(seconds 300)" && run_tests tests check "$(seconds 120)"
fi
# A build may have been configured with options that leave tests out.
fresh() { rm -f "$1/CMakeCache.txt"; }
if can_run asan; then
  fresh build-asan-ubsan
  build asan asan-ubsan "$(seconds 240)" && run_tests asan asan-ubsan "$(seconds 300)"
fi
if can_run tsan; then
  fresh build-tsan
  build tsan tsan "$(seconds 120)" && run_tests tsan tsan "$(seconds 120)"
fi
if can_run aarch64; then
  fresh build-aarch64
  build aarch64 aarch64 "$(seconds 60)" && run_tests aarch64 aarch64 "$(seconds 120)"
fi

# The other parts are tests of one build, chosen by their labels.
labels=() others=()
if can_run release && can_run asan; then others+=(in_asan); fi
for part in packaging engines browser libtorch lint bench; do
  if can_run "$part"; then labels+=("${part/libtorch/torch}"); else others+=("${part/libtorch/torch}"); fi
done
join() { local IFS='|'; echo "^($*)\$"; }
if can_run release || ((${#labels[@]})); then
  options=("-DLOTUS_WITH_TORCH=$(can_run libtorch && echo ON || echo OFF)")
  # Nothing may be missing unnoticed.
  ! has release || ((${#left_out[@]})) || options+=(-DLOTUS_LEAVE_OUT_NOTHING=ON)
  filter=()
  if ! can_run release; then
    filter=(-L "$(join "${labels[@]}")")
  elif ((${#others[@]})); then
    filter=(-LE "$(join "${others[@]}")")
  fi
  fresh build
  if [[ ${chosen[*]} == lint ]]; then targets=(--target help); fi
  build "$(can_run release && echo release || echo "${labels[0]}")" default "$(seconds 480)" "${options[@]}" &&
    run_tests "$(can_run release && echo release || echo "${labels[0]}")" default "$(seconds 480)" "${filter[@]}"
fi

echo
for what in "${left_out[@]}"; do
  echo "left out: $what"
done
if [[ ${chosen[*]} == tests ]]; then
  [[ -n $progress_verbose ]] || sed -n 's/^-- lotus: \(.*\) left out, because \(.*\) was not found$/left out: \1 (no \2)/p' build/test/tests-build.log |
    sort -u
  echo "not run: $(names | grep -vx tests | xargs) (tools/test.sh --all, or --only PART)"
fi
((unchanged == 0)) ||
  echo "not run again: $unchanged tests that have passed with the same programs, scripts and data (tools/test.sh --again)"
echo "$(((SECONDS + 30) / 60)) minutes"
python3 tools/test_results.py sums "${results[@]}"
