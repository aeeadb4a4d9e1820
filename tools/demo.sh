#!/usr/bin/env bash
# Records a real image pipeline and shows what limits it. Needs no argument, installs missing
# packages, and writes only below build/.
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

say() { printf '\n== %s\n' "$*"; }

say 'packages'
bash tools/packages.sh g++ cmake ninja-build \
  libcli11-dev libjpeg-dev zlib1g-dev nlohmann-json3-dev libprotozero-dev libdw-dev libsqlite3-dev libjs-chart.js
echo 'all there'

# Compiling takes about 160 seconds of CPU time, 30 of them for the largest file. Only the tool is
# built with -Og, because this run's logs are small enough for it. The pipeline is fully optimized,
# because the shares of its operations depend on that.
seconds=$((160 / $(nproc)))
((seconds > 30)) || seconds=30
say "building lotus-tool and examples/imagenet_pipeline in build/demo-build: about $seconds s the first time"
cmake -S . -B build/demo-build -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release -DLOTUS_QUICK_TOOL=ON \
  -DLOTUS_BUILD_TESTS=OFF -DLOTUS_BUILD_BENCH=OFF -DLOTUS_INSTALL=OFF >/dev/null
NINJA_STATUS='[%p, %e s] ' cmake --build build/demo-build --target lotus-tool example_imagenet_pipeline

tool=build/demo-build/bin/lotus-tool
say 'recording the pipeline into build/demo/run'
rm -rf build/demo
build/demo-build/examples/imagenet_pipeline --count 960 --log-file build/demo/run/lotustrace_log

say "$tool diagnose build/demo/run"
"$tool" diagnose build/demo/run
"$tool" report --quiet build/demo/run -o build/demo/report.html
cat <<END

Everything on one page: $PWD/build/demo/report.html
Next: $tool stats build/demo/run
END
