#!/usr/bin/env bash
# Records a slow loader, shows what limits it, makes the change that lotus-tool suggests first, records
# again, and compares the prediction with what was measured. tools/demo.sh calls it.
#
# Usage: tools/demo_fix.sh LOTUS_TOOL PHOTO_LOADER FOLDER
#        tools/demo_fix.sh --conclude BEFORE.json AFTER.json   only compares two diagnoses
set -euo pipefail
here=$(dirname -- "${BASH_SOURCE[0]}")

# facts FILE: sets the variables that demo_facts.cmake prints, with the name that follows an
# underscore: before_rate, after_rate.
facts() {
  local of=$1 name value
  while IFS== read -r name value; do
    printf -v "${of}_$name" '%s' "$value"
  done < <(cmake "-DFILE=$2" -P "$here/cmake/demo_facts.cmake")
}

# Prints the last sentences. What is compared is rounded as it is shown, so that the words never
# contradict the numbers.
conclude() {
  awk -v gain="$before_gain" -v low="$before_low" -v high="$before_high" -v before="$before_rate" \
    -v after="$after_rate" -v others_before="$before_others" -v others_after="$after_others" '
    function times(x) { return sprintf(x < 10 ? "%.2f" : "%.1f", x) }
    BEGIN {
      measured = times(after / before); low = times(low / before); high = times(high / before)
      printf "Predicted %s times as fast (%s to %s), measured %s times.\n", times(gain), low, high, measured
      if (measured + 0 >= low + 0 && measured + 0 <= high + 0) exit
      print "That is outside the 90 % interval, as one run in ten is."
      if (others_before > 0.1 || others_after > 0.1)
        printf "Other programs used %.1f CPUs during the first recording and %.1f during the second;\n" \
               "the prediction assumes a machine that is equally busy during both.\n", others_before, others_after
      else print "If that happens again and again, something else differs between the recordings."
    }'
}

before_gain=
if [[ $1 == --conclude ]]; then
  facts before "$2"
  facts after "$3"
  conclude
  exit
fi

tool=$1 loader=$2 folder=$3
say() { printf '\n== %s\n' "$*"; }

# record NAME ARGUMENT...: records the loader into a folder, and diagnoses it.
record() {
  local run=$folder/$1
  shift
  say "$tool run --dir $run -- $loader${*:+ $*}"
  rm -rf -- "$run"
  "$tool" run --quiet --dir "$run" -- "$loader" "$@" >"$run.txt" 2>&1 ||
    { cat "$run.txt"; return 1; }
  "$tool" diagnose --quiet --json "$run" >"$run.json"
  "$tool" diagnose --quiet "$run" | sed '/^Next: /,$d'
}

mkdir -p -- "$folder"
for try in 1 2 3; do
  record before
  facts before "$folder/before.json"
  [[ -z $before_gain ]] || break
  ((try == 3)) || echo 'No suggestion, because something disturbed this recording: record once more.'
done
if [[ -z $before_gain ]]; then
  echo 'This machine is too busy now to show what limits the loader. Try again when it is quieter.'
  exit 0
fi

if ((before_row > 1)); then
  say "the first suggestion that this loader has a setting for: $before_change"
else
  say "the first suggestion: $before_change"
fi
case $before_setting in
  decode=once)
    cat <<'END'
photo_loader decodes each photograph twice, once for each of the two parts that it cuts out of it.
With decode=once, both are cut out of the same decoded photograph, so Decode takes half the time.
END
    ;;
  workers=*) echo "photo_loader has an argument for it: $before_setting" ;;
esac
record after "$before_setting"
facts after "$folder/after.json"
"$tool" report --quiet "$folder/before" "$folder/after" -o "$folder/report.html"
case $before_setting in
  workers=*) curve=workers ;;
  *) curve=Decode ;;
esac
"$tool" whatif --quiet "$folder/before" --curve "$curve" --format svg >"$folder/curve.svg"
say "$tool whatif $folder/before --curve $curve"
"$tool" whatif --quiet "$folder/before" --curve "$curve"
say 'did it help?'
conclude
