#!/usr/bin/env bash
# Shows recording in production from start to end: a program records within limits, its metrics are
# collected, a hang triggers a snapshot, and the snapshot is downloaded and analyzed. Creates the
# folders server/ and laptop/ in the current folder, which represent two machines. Usage:
# examples/production/operate.sh build/examples/production [LOTUS_TOOL]
set -euo pipefail
program=$(realpath "${1:?PROGRAM is missing}")
tool=${2:-lotus-tool}
rm -rf server laptop
mkdir -p server/metrics laptop

# wait_until COMMAND...: repeats the command until it succeeds, for up to 30 s.
wait_until() {
  local tries
  for ((tries = 0; tries < 300; ++tries)); do
    "$@" && return
    sleep 0.1
  done
  echo "waited 30 s in vain for: $*" >&2
  return 1
}
has_metric() { grep -Eqs "^$1\{[^}]*\} $2\$" server/metrics/lotus.prom; }
has_snapshot() { compgen -G "server/run.snapshot-*-$1" >/dev/null; }

# On the server: start the program, as a service manager would.
(cd server && exec "$program") &
service=$!
# On the server: write metrics to a file, as for the node exporter of Prometheus.
wait_until test -d server/run
"$tool" top server/run --interval 200ms --window 2s --openmetrics server/metrics/lotus.prom &
scraper=$!
trap 'kill "$service" "$scraper" 2>/dev/null || true' EXIT
wait_until has_metric lotus_recording 1
echo "scraped: $(grep '^lotus_batches_per_second' server/metrics/lotus.prom)"

# The storage hangs. While the program waits, it writes a snapshot without being asked, and the
# metric lotus_hanging becomes 1.
wait_until has_snapshot 'wait*'
echo "snapshot: $(cd server && echo run.snapshot-*)"
wait_until has_metric lotus_hanging 1
echo "alert: $(grep '^lotus_hanging' server/metrics/lotus.prom)"

# After the hang, request a snapshot with a signal. This snapshot also contains the slow call.
wait_until has_metric lotus_hanging 0
kill -USR2 "$service"
wait_until has_snapshot signal

# Download both snapshots while the program continues.
tar -C server -cz $(cd server && echo run.snapshot-*) | tar -C laptop -xz
wait "$service"
kill "$scraper"

# On the laptop: find the cause of the hang.
cd laptop
"$tool" diagnose run.snapshot-*-signal | tee diagnosis.txt
grep -q 'Slowest call: Read' diagnosis.txt
"$tool" report run.snapshot-*-signal -o report.html
ls -l report.html
