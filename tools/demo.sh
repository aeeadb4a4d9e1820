#!/usr/bin/env bash
# Records a real image pipeline and shows where its time went: needs no argument, installs what is
# missing. Everything it writes is below build/.
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

say() { printf '\n== %s\n' "$*"; }

say 'packages'
bash tools/packages.sh g++ cmake ninja-build \
  libcli11-dev libjpeg-dev zlib1g-dev nlohmann-json3-dev libprotozero-dev libdw-dev libsqlite3-dev libjs-chart.js
echo 'all there'

say 'building lotus-tool and examples/imagenet_pipeline in build/demo-build'
cmake -S . -B build/demo-build -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release \
  -DLOTUS_BUILD_TESTS=OFF -DLOTUS_BUILD_BENCH=OFF
cmake --build build/demo-build --target lotus-tool example_imagenet_pipeline

say 'recording the pipeline into build/demo/run'
rm -rf build/demo
build/demo-build/examples/imagenet_pipeline --count 960 --log-file build/demo/run/lotustrace_log

say 'lotus-tool stats build/demo/run'
build/demo-build/bin/lotus-tool stats build/demo/run

say 'lotus-tool viz build/demo/run -o build/demo/trace.json'
build/demo-build/bin/lotus-tool viz build/demo/run -o build/demo/trace.json
cat <<END

Drag $PWD/build/demo/trace.json
into https://ui.perfetto.dev (it stays in your browser), or load it at chrome://tracing where your
browser still has that.
END
