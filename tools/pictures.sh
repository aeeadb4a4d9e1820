#!/usr/bin/env bash
# Creates the pictures of the documentation, in examples/pictures/.
#
# Usage: tools/pictures.sh [BUILD]
#
# Records quick_start, and imagenet_pipeline of the build folder BUILD (default: build), with
# real-time priority if possible, so that other programs do not show in the pictures. Needs Chromium.
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
build=$(realpath -- "${1:-build}")
source=$PWD
to=$source/examples/pictures
work=$build/pictures
for program in bin/lotus-tool examples/imagenet_pipeline; do
  [[ -x $build/$program ]] || { echo "no $build/$program: build it" >&2; exit 2; }
done
rm -rf -- "$work"
mkdir -p "$to" "$work"
cd "$work"  # the pages show the names of the runs
tool=$build/bin/lotus-tool
first=(chrt -r 1)
"${first[@]}" true 2> log || first=()
ln -s "$build/examples/imagenet_pipeline" .
"${CXX:-c++}" -std=c++17 -O2 -I "$source/include" "$source/examples/quick_start.cpp" -o quick_start -pthread
"$tool" run -q --dir before -- "${first[@]}" ./quick_start 1 > log
for workers in 1 2 3 4 6; do  # the runs of the curve
  "$tool" run -q --dir "curve/workers-$workers" -- "${first[@]}" ./quick_start $workers > log
done
"$tool" whatif -q curve/workers-2 --curve workers --format svg > "$to/curve.svg"
echo "$to/curve.svg"
"${first[@]}" ./imagenet_pipeline --count 960 --log-file run/lotustrace_log > log
"$tool" report -q before -o report.html
"$tool" report -q run -o run.html

# picture NAME PAGE DARK(0|1) HEIGHT [HASH]: creates a picture. Blink uses 0 for dark and 1 for
# light.
picture() {
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --disable-quic --no-first-run \
    --user-data-dir="$work/profile" --virtual-time-budget=10000 --blink-settings=preferredColorScheme="$((1 - $3))" \
    --window-size="1240,$4" --screenshot="$to/$1.png" "file://$work/$2${5:-}" 2> log ||
    { cat log >&2; exit 1; }
  echo "$to/$1.png"
}

# Numbers on the timeline, and their meanings below it instead of the help text.
cat > notes.html <<'END'
<style>
  .number { position: absolute; width: 22px; height: 22px; margin: -11px; border-radius: 50%; background: #b3261e; color: #fff;
    font: bold 14px/22px sans-serif; text-align: center; z-index: 4; box-shadow: 0 0 0 2px #fff; }
  #notes { columns: 2; margin: 8px 0; padding: 0; list-style: none; font-size: 14px; }
  #notes li { break-inside: avoid; padding: 0 0 4px 30px; position: relative; }
  #notes .number { left: 11px; top: 11px; }
</style>
<script>
"use strict";
pageReady.then(() => {
  const list = element("ol");
  list.id = "notes";
  const number = (text) => element("span", String(text), "number");
  const note = (x, y, text) => {
    const mark = number(list.childNodes.length + 1);
    mark.style.left = x + "px";
    mark.style.top = y + "px";
    byId("timeline-box").append(mark);
    const entry = element("li", number(list.childNodes.length + 1));
    entry.append(text);
    list.append(entry);
  };
  const lane = (start) => timeline.lanes.find((of) => of.title.startsWith(start));
  const longest = (row, kind) => {
    let best = -1;
    for (let i = 0; i < row.length; ++i) {
      if (kind !== undefined && Math.floor(row.name[i] / 1e9) !== kind) continue;
      if (best < 0 || row.duration(i) > row.duration(best)) best = i;
    }
    return best;
  };
  const at = (row, i) => timeline.x((row.start[i] + row.end[i]) / 2);
  const main = lane("main");
  const worker = lane("worker");
  const [wait, step] = [longest(main.rows[0], 1), longest(main.rows[0], 2)];
  const batch = longest(worker.rows[0], 0);
  const inner = worker.rows[1];
  note(at(main.rows[0], wait), main.rows[0].y + 6, "The consumer waits for a batch. Stripes are lost time.");
  note(at(main.rows[0], step), main.rows[0].y + 20, "The consumer works on it: a step.");
  note(at(worker.rows[0], batch), worker.rows[0].y + 6, "A worker preprocesses this batch, which has this number.");
  note(at(inner, longest(inner)), inner.y + 6, "The operations that build it, each in its own color; below each are those that it calls.");
  const arrow = timeline.shownArrows().find(([from, track]) => track === worker.number && from > timeline.span * 0.3);
  if (arrow) note(timeline.x(arrow[0]), worker.rows[0].y - 2, "An arrow leads from the end of the batch to the step that received it.");
  if (main.marks.length) note(timeline.x(main.marks[0].at) - 18, main.rows[0].y - 8, "A triangle is a batch that arrived out of order and was buffered. If there are many, one slow batch delays all others.");
  note(timeline.x(timeline.span * 0.7), lane("batches ready").rows[0].y + 12, "How many batches are ready: if there are none, the consumer is faster than the workers.");
  note(timeline.x(timeline.span * 0.55), lane("in preprocessing").rows[0].y + 12, "How many batches are in preprocessing at once.");
  const off = worker.rows.find((row) => row.kind === "off CPU");
  if (off) note(timeline.left + 0.8 * timeline.plot, off.y + 6, "Here the thread was not on a CPU: it waited for one, or was blocked.");
  byId("timeline-help").replaceChildren();
  byId("timeline-help").append(list);
});
</script>
END
# page_with NAME TEXT: creates the report of the pipeline with a text before its end.
page_with() {
  sed '$d' run.html | sed '$d' > "$1"  # without </body></html>
  printf '%s\n</body>\n</html>\n' "$2" >> "$1"
}
only_timeline='<style>header, main section:not(:has(#timeline)) { display: none; }</style>'
page_with batch.html "$only_timeline"
page_with noted.html "$only_timeline$(cat notes.html)"

picture report report.html 0 540
picture report_dark report.html 1 540
picture batch batch.html 0 900 '#batch=5.0'
picture how_to_read noted.html 0 600
picture critical_path batch.html 0 470  # the critical path is outlined
