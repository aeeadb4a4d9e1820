#!/usr/bin/env bash
# Measures how much the recording costs that docs/guides/production.md recommends, with three
# programs. Runs each program alternately with and without recording. Prints the ratio of the CPU
# times, the bytes written to the logs, and the bytes that an optimal compression of the kept
# records would need.
#
# Usage: bench/production.sh BUILD [REPETITIONS]. BUILD is a build folder with
# bench/production_work, bench/record_entropy and, if it was built, examples/imagenet_pipeline.
set -euo pipefail
build=$(cd "${1:?BUILD is missing}" && pwd)
repetitions=${2:-9}
keep_bytes=64000000
work_dir=$(mktemp -d)
trap 'rm -r "$work_dir"' EXIT
cd "$work_dir"

# cpu_ms COMMAND...: runs a command and prints its CPU time, user and system, in milliseconds.
cpu_ms() {
  local TIMEFORMAT='%3U %3S' seconds
  seconds=$({ time "$@" >out 2>&1; } 2>&1)
  [[ $seconds =~ ^([0-9]+)\.([0-9]+)\ ([0-9]+)\.([0-9]+)$ ]]
  echo $((10#${BASH_REMATCH[1]}${BASH_REMATCH[2]} + 10#${BASH_REMATCH[3]}${BASH_REMATCH[4]}))
}

# Prints how many bytes were written to the logs in run/, including logs that the flight recorder
# has deleted.
bytes_written() {
  local kept gone
  kept=$(find run -name '.lotus_compact_*' -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }')
  gone=$(cat run/.lotus_info_* | awk '$1 == "forgotten" { n += $3 } END { print n + 0 }')
  echo $((kept + gone))
}

records_written() {
  cat run/.lotus_info_* | awk '$1 == "records" { n += $2 } END { print n }'
}

median() { sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

# measure NAME OFF-COMMAND -- ON-COMMAND: compares a program without recording (OFF-COMMAND) with
# the same program with recording (ON-COMMAND).
measure() {
  local name=$1 off=() on=() which=off
  for word in "${@:2}"; do
    if [[ $word == -- ]]; then which=on; elif [[ $which == off ]]; then off+=("$word"); else on+=("$word"); fi
  done
  local bare=() recorded=() seconds=()
  for ((i = 0; i < repetitions; ++i)); do
    rm -rf run
    bare+=("$(cpu_ms "${off[@]}")")
    local began=$EPOCHREALTIME
    recorded+=("$(LOTUS_KEEP_BYTES=$keep_bytes LOTUS_LOG_FILE=run/lotustrace_log \
      cpu_ms "${on[@]}")")
    seconds+=("$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')")
  done
  awk -v name="$name" -v bare="$(printf '%s\n' "${bare[@]}" | median)" \
    -v recorded="$(printf '%s\n' "${recorded[@]}" | median)" \
    -v seconds="$(printf '%s\n' "${seconds[@]}" | median)" \
    -v bytes="$(bytes_written)" -v records="$(records_written)" \
    -v entropy="$("$build/bench/record_entropy" run)" 'BEGIN {
      printf "%-10s %10.0f %9d %9d %10.2f %12.1f %8.1f %11.2f\n", name, records / seconds, bare,
        recorded, (recorded - bare) / seconds / 10, bytes / records, entropy,
        bytes / seconds * 86400 / 1e9
    }'
}

printf '%-10s %10s %9s %9s %10s %12s %8s %11s\n' program records/s 'bare ms' 'with ms' \
  '% of a CPU' bytes/record entropy 'GB a day'
measure tokenizer "$build/bench/production_work" tokenizer -- "$build/bench/production_work" tokenizer
measure service "$build/bench/production_work" service -- "$build/bench/production_work" service
pipeline=$build/examples/imagenet_pipeline
if [[ -x $pipeline ]]; then
  images=(--images "$work_dir/images" --epochs 3)
  "$pipeline" --make-images "$work_dir/images" --log-file none >/dev/null
  images[1]=$(find "$work_dir/images" -mindepth 2 -type d -printf '%h\n' | head -n 1)
  measure imagenet "$pipeline" "${images[@]}" --log-file none -- "$pipeline" "${images[@]}"
fi
