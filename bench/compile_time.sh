#!/usr/bin/env bash
# Prints how much the library costs in a source file that uses it: the CPU time of compiling the
# file, relative to a file that includes only <atomic> and <string_view> (the floor), and the size
# of code and data in the object file in bytes. Prints the minimum of several runs. Compiles the
# files alternately, so that other load on the machine affects all of them equally.
#
# Usage: bench/compile_time.sh [REPETITIONS [COMPILER [LEVEL]]]. To compare with Tracy, set the
# variable TRACY to a folder with tracy/Tracy.hpp.
set -euo pipefail
repetitions=${1:-9}
compiler=${2:-c++}
level=${3:--O2}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work_dir=$(mktemp -d)
trap 'rm -r "$work_dir"' EXIT
cd "$work_dir"

declare -A flags least=()
files=()
# file NAME FLAGS LINE...: creates a source file with these lines, and adds it to those that are
# measured.
file() {
  printf '%s\n' "${@:3}" >"$1.cpp"
  files+=("$1")
  flags[$1]=$2
}

ten_scopes() {
  echo 'void work(int);'
  for i in {1..10}; do echo "void f$i() { LOTUS_SCOPE(\"Work$i\"); work($i); }"; done
}
one_scope='void work(); void f() { LOTUS_SCOPE("Work"); work(); }'
batch_loop='bool next(int*); void use(int);
void f() {
  for (int i = 0;; ++i) {
    int batch = 0;
    { LOTUS_BATCH_WAIT(i); if (!next(&batch)) return; }
    LOTUS_BATCH_CONSUMED(i);
    LOTUS_SCOPE("Use");
    use(batch);
  }
}'

file floor '' '#include <atomic>' '#include <string_view>'
for way in compiled header_only; do
  use=-I$root/include
  [[ $way == header_only ]] || use+=' -DLOTUS_COMPILED'
  include='#include <lotus/lotus.hpp>'
  file "${way}_include" "$use" "$include"
  file "${way}_one_scope" "$use" "$include" "$one_scope"
  file "${way}_ten_scopes" "$use" "$include" "$(ten_scopes)"
  file "${way}_batch_loop" "$use" "$include" "$batch_loop"
done
file library "-I$root/include -DLOTUS_COMPILED -fPIC -fvisibility=hidden" \
  '#define LOTUS_IMPLEMENTATION' '#include <lotus/lotus.hpp>'
if [[ -n ${TRACY-} ]]; then
  tracy=$TRACY
  [[ ! -d $TRACY/public ]] || tracy=$TRACY/public
  file tracy_one_zone "-I$tracy -DTRACY_ENABLE" '#include <tracy/Tracy.hpp>' \
    'void work(); void f() { ZoneScopedN("Work"); work(); }'
fi

# Compiles $1 once and prints the CPU time, user and system, in milliseconds.
cpu_ms() {
  local TIMEFORMAT='%3U %3S' seconds
  # shellcheck disable=SC2086
  seconds=$({ time "$compiler" -std=c++17 "$level" ${flags[$1]} -c "$1.cpp" -o "$1.o"; } 2>&1)
  [[ $seconds =~ ^([0-9]+)\.([0-9]+)\ ([0-9]+)\.([0-9]+)$ ]] || {
    echo "$seconds" >&2
    return 1
  }
  echo $((10#${BASH_REMATCH[1]}${BASH_REMATCH[2]} + 10#${BASH_REMATCH[3]}${BASH_REMATCH[4]}))
}

for ((i = 0; i < repetitions; ++i)); do
  for name in "${files[@]}"; do
    ms=$(cpu_ms "$name")
    if ((ms < ${least[$name]:-999999})); then least[$name]=$ms; fi
  done
done

echo "${compiler##*/} $level, least of $repetitions"
printf '%-24s %8s %10s %12s\n' file 'CPU ms' 'floor = 1' 'object bytes'
for name in "${files[@]}"; do
  bytes=$(size "$name.o" | awk 'NR == 2 { print $1 + $2 }')
  ratio=$((least[$name] * 10 / least[floor]))
  printf '%-24s %8d %8d.%d %12d\n' "$name" "${least[$name]}" $((ratio / 10)) $((ratio % 10)) "$bytes"
done
