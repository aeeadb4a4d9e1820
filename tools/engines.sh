#!/usr/bin/env bash
# Installs the programs with which the tests read lotus-tool's exports. From PyPI: DuckDB's command,
# Spark, which needs Java (Debian: default-jre-headless), snakeviz, and Playwright, which opens
# pages; the rules of axe-core, with which the report is tested; validators of JSON and metrics, and
# a client of the Model Context Protocol; Meson, Conan and the newest CMake, which consume the
# project. From npm: speedscope. Usage: tools/engines.sh [FOLDER]. Needs hundreds of MB in FOLDER,
# by default build-engines/ of this checkout.
set -euo pipefail
folder=${1:-"$(dirname "${BASH_SOURCE[0]}")/../build-engines"}

[[ -x $folder/bin/python3 ]] || python3 -m venv "$folder"
for package in duckdb-cli==1.5.6 pyspark==4.3.0 snakeviz==2.2.2 playwright axe-playwright-python==0.1.8 \
    jsonschema==4.26.0 prometheus-client==0.26.0 mcp==2.3.0 markdown-it-py==4.3.0 meson==1.12.1 conan==2.34.0 \
    cmake==4.4.5; do
  "$folder/bin/python3" -m pip install --quiet --disable-pip-version-check "$package"
done
if command -v npm > /dev/null; then
  npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder" speedscope@1.25.0
fi
