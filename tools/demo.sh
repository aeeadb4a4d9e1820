#!/usr/bin/env bash
# Records a slow loader, finds out what limits it, makes the change that is suggested first, and shows
# whether it helped. Needs no argument, installs missing packages (Debian, Ubuntu), and writes only
# below build/.
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
. tools/progress.sh

usage='Usage: tools/demo.sh [-v]
Installs missing packages, builds lotus-tool and a slow loader, records it, finds the cause, cures it
and compares; README.md says how long that takes.
  -v  show what the build prints'
case ${1:-} in
  '') ;;
  -v | --verbose) progress_verbose=1 ;;
  -h | --help) echo "$usage"; exit 0 ;;
  *) echo "$usage" >&2; exit 2 ;;
esac

build=build/demo-build
progress_log=build/demo/build.txt
packages=(g++ cmake ninja-build libcli11-dev libjpeg-dev zlib1g-dev nlohmann-json3-dev libprotozero-dev
  libdw-dev libsqlite3-dev libjs-chart.js)

# Without this, a full disk would show as an error in the middle of the build.
free_kb=$(df -Pk . | awk 'NR == 2 { print $4 }')
if ((free_kb < 150000)) && [[ ! -x $build/bin/lotus-tool ]]; then
  echo "demo: the disk is full: $((free_kb / 1000)) MB are free in $PWD, 150 MB are needed" >&2
  exit 1
fi

configure() {
  cmake -S . -B "$build" -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_FLAGS_RELEASE='-O1 -DNDEBUG' -DLOTUS_QUICK_TOOL=ON -DLOTUS_BUILD_TESTS=OFF -DLOTUS_BUILD_BENCH=OFF -DLOTUS_INSTALL=OFF
}

# Optimizing everything would take twice as long, and is not needed for logs as small as this run's.
# Compiling takes about 140 s of CPU time, and the largest file 20 s.
build_s=$((140 / $(nproc)))
((build_s > 20)) || build_s=20
if [[ -x $build/bin/lotus-tool ]]; then build_s=2; fi
progress_expected=$((build_s + 2))
tools/packages.sh --permission "${packages[@]}"
progress_step 'packages' 1 tools/packages.sh "${packages[@]}"
progress_step 'configuring' 2 configure
progress_step 'building lotus-tool and the loader' "$build_s" \
  cmake --build "$build" --target lotus-tool example_photo_loader

tool=$build/bin/lotus-tool
tools/demo_fix.sh "$tool" "$build/examples/photo_loader" build/demo
[[ -e build/demo/report.html ]] || exit 0
cat <<END

Both runs on one page: $PWD/build/demo/report.html
The curve as a picture: $PWD/build/demo/curve.svg
Next: $tool compare build/demo/before build/demo/after
      $tool whatif build/demo/after
END
