#!/usr/bin/env bash
# Fetches the programs that what lotus-tool exports is tested with, from PyPI: DuckDB's command, Spark,
# which needs Java (Debian: default-jre-headless), snakeviz, and Playwright to look at it; and the
# rules of axe-core, which the report is tested with. tools/engines.sh [FOLDER]
# They are hundreds of MB in a folder of their own, build-engines/ of this checkout.
set -euo pipefail
folder=${1:-"$(dirname "${BASH_SOURCE[0]}")/../build-engines"}

[[ -x $folder/bin/python3 ]] || python3 -m venv "$folder"
for package in duckdb-cli==1.5.6 pyspark==4.3.0 snakeviz==2.2.2 playwright axe-playwright-python==0.1.8; do
  "$folder/bin/python3" -m pip install --quiet --disable-pip-version-check "$package"
done
