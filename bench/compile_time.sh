#!/usr/bin/env bash
# Prints what including lotus/lotus.hpp adds to the compile time of an empty file: the least of
# several runs, in turn, so that a busy machine disturbs both alike.
#
# bench/compile_time.sh [REPETITIONS [COMPILER]]; for each optimisation level that users have.
set -euo pipefail
repetitions=${1:-9}
compiler=${2:-c++}
include_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../include" && pwd)
work_dir=$(mktemp -d)
trap 'rm -r "$work_dir"' EXIT
: >"$work_dir/empty.cpp"
echo '#include "lotus/lotus.hpp"' >"$work_dir/lotus.cpp"

# CPU milliseconds, user and system, of one compilation of $1 at level $2.
cpu_ms() {
  local TIMEFORMAT='%3U %3S' seconds
  seconds=$({ time "$compiler" -std=c++17 "$2" -I "$include_dir" -c "$work_dir/$1.cpp" \
    -o "$work_dir/$1.o"; } 2>&1)
  [[ $seconds =~ ^([0-9]+)\.([0-9]+)\ ([0-9]+)\.([0-9]+)$ ]] || {
    echo "$seconds" >&2
    return 1
  }
  echo $((10#${BASH_REMATCH[1]}${BASH_REMATCH[2]} + 10#${BASH_REMATCH[3]}${BASH_REMATCH[4]}))
}

printf '%-8s %-6s %9s %9s %9s\n' compiler level 'empty ms' 'lotus ms' 'extra ms'
for level in -O0 -O2; do
  declare -A least=([empty]=999999 [lotus]=999999)
  for ((i = 0; i < repetitions; ++i)); do
    for file in empty lotus; do
      ms=$(cpu_ms "$file" "$level")
      ((ms >= least[$file])) || least[$file]=$ms
    done
  done
  printf '%-8s %-6s %9d %9d %9d\n' "${compiler##*/}" "$level" "${least[empty]}" "${least[lotus]}" \
    $((least[lotus] - least[empty]))
done
