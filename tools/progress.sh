# Shows how far a script is: on a terminal one line that is renewed, with a bar and the seconds left;
# elsewhere a plain line every ten seconds. Hides what commands print, unless they fail. To be sourced
# by bash scripts with `set -e`:
#   progress_verbose=1        shows what commands print instead
#   progress_log=FILE         where their output goes
#   progress_expected=S       seconds that all steps together are expected to take
#   progress_step WHAT S COMMAND...  runs a command or function that is expected to take S seconds,
#                             then prints how long it took, or its error
# Shell functions run in this shell, so they can set variables. A question (a password for sudo)
# would be overwritten, so it must be asked before a step begins.

progress_verbose=${progress_verbose:-}
progress_expected=${progress_expected:-0}

# Prints "DONE TOTAL" as the last line of ninja (`[3/90] …`) or ctest (`  3/90 Test …`) in the log says;
# "0 0" if there is none.
progress_count() {
  local counted
  counted=$(tail -c 4000 "$progress_log" 2>/dev/null | tr '\r' '\n' |
    sed -nE 's@^ *\[? *([0-9]+)/([0-9]+)(\]| Test ).*@\1 \2@p' | tail -n 1)
  echo "${counted:-0 0}"
}

# Prints "FRACTION_IN_PERCENT LEFT_S WHAT" for a step that began at the time `began_s`. The more of the
# step is done, the less the expected time counts.
progress_state() {
  local what=$1 expected_s=$2 began_s=$3 done total elapsed_s step_s left_s all_s
  read -r done total < <(progress_count)
  elapsed_s=$((SECONDS - began_s))
  step_s=$expected_s
  if ((total > 0)); then
    what+=", $done of $total"
    ((done == 0)) || step_s=$((((total - done) * expected_s + elapsed_s * total) / total))
  fi
  left_s=$((step_s > elapsed_s ? step_s - elapsed_s : 1))
  ((progress_expected <= expected_s)) || left_s=$((left_s + progress_expected - expected_s))
  all_s=$((SECONDS - progress_began_s + left_s))
  echo "$(((all_s - left_s) * 100 / all_s)) $left_s $what"
}

# Prints the state of a step until its input ends.
progress_watch() {
  local percent left_s what bar width wait_s=10 terminal ended=0
  exec {terminal}>&1
  [[ ! -t 1 ]] || wait_s=0.5
  while read -rt "$wait_s" || ended=$?; ((ended > 128)); do
    read -r percent left_s what < <(progress_state "$@")
    if [[ -t 1 ]]; then
      printf -v bar '%*s' $((percent / 5)) ''
      printf -v bar '%-20s' "${bar// /#}"
      read -r _ width < <(stty size 2>/dev/null <&"$terminal" || true) || width=0
      what="[${bar// /.}] $what, about $left_s s left"
      printf '\r\033[K%s' "${what:0:$((width > 1 ? width - 1 : 79))}"
    else
      echo "$what, about $left_s s left"
    fi
  done
}

# Prints what a reader of a failed step's log needs: the first error of a compiler, a linker or CMake,
# otherwise the last lines. Of failed tests, their caller knows more.
progress_error() {
  local error
  ! grep -q '% tests passed' "$progress_log" || return 0
  error=$(awk '
    /^FAILED: / && !failed { failed = 1; next }      # then comes the command, then what it printed
    failed == 1 { failed = 2; next }
    failed == 2 && (/^\[[0-9]+\/[0-9]+\]/ || /^FAILED: / || /^ninja: /) { exit }
    /^CMake Error/ && !failed { failed = 3 }
    failed == 3 && (/^-- / || /^See also/) { exit }
    failed >= 2 && ++printed <= 40' "$progress_log")
  if [[ -n $error ]]; then
    printf '%s\n' "$error"
  else
    tail -n 20 "$progress_log"
  fi
}

progress_step() {
  local what=$1 expected_s=$2 began_s=$SECONDS status=0 watched watcher
  shift 2
  progress_began_s=${progress_began_s:-$SECONDS}
  if [[ -n $progress_verbose ]]; then
    echo "== $what"
    "$@" || status=$?
  else
    mkdir -p -- "$(dirname -- "$progress_log")"
    : >"$progress_log"
    [[ ! -t 1 ]] || printf '\r\033[K%s' "$what"
    exec {watched}> >(progress_watch "$what" "$expected_s" "$began_s")
    watcher=$!
    NINJA_STATUS='[%f/%t] ' "$@" >>"$progress_log" 2>&1 </dev/null {watched}>&- || status=$?
    exec {watched}>&-
    wait "$watcher" || true
    [[ ! -t 1 ]] || printf '\r\033[K'
  fi
  progress_expected=$((progress_expected > expected_s ? progress_expected - expected_s : 0))
  if ((status == 0)); then
    echo "$what: $((SECONDS - began_s)) s"
  elif [[ -n $progress_verbose ]]; then
    echo "$what failed" >&2
  else
    { progress_error; echo "$what failed; all it printed is in $progress_log"; } >&2
  fi
  return "$status"
}
