#!/usr/bin/env bash
# Fetches the programs that what lotus-tool exports is tested with, from PyPI: DuckDB's command, Spark,
# which needs Java (Debian: default-jre-headless), snakeviz, and Playwright to look at it; the rules of
# axe-core, which the report is tested with; and from npm speedscope. tools/engines.sh [FOLDER]
# They are hundreds of MB in a folder of their own, build-engines/ of this checkout.
set -euo pipefail
folder=${1:-"$(dirname "${BASH_SOURCE[0]}")/../build-engines"}

[[ -x $folder/bin/python3 ]] || python3 -m venv "$folder"
for package in duckdb-cli==1.5.6 pyspark==4.3.0 snakeviz==2.2.2 playwright axe-playwright-python==0.1.8; do
  "$folder/bin/python3" -m pip install --quiet --disable-pip-version-check "$package"
done
if command -v npm > /dev/null; then
  npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder" speedscope@1.25.0
fi
