#!/usr/bin/env bash
# Tests what tools/progress.sh and tools/test_results.py show. Usage: scripts_test.sh SOURCE
set -euo pipefail
source=$1
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cd "$work"
fail() {
  printf 'FAILED: %s\n' "$@" >&2
  exit 1
}
# expect TEXT FILE: the file contains exactly this text.
expect() { [[ $(cat "$2") == "$1" ]] || fail "expected: $1" "but $2 is: $(cat "$2")"; }

. "$source/tools/progress.sh"
progress_log=logs/build.log

# Of a failed build, only the compiler's error is shown.
failing_build() {
  printf '%s\n' '[1/3] Building a.o' 'FAILED: b.o' 'c++ -o b.o b.cpp' "b.cpp:3:1: error: no 'x'" '    3 | x' \
    '[2/3] Building c.o' 'ninja: build stopped: subcommand failed.'
  return 7
}
status=0
progress_step build 5 failing_build >out 2>err || status=$?
((status == 7)) || fail "status $status"
expect '' out
expect "b.cpp:3:1: error: no 'x'
    3 | x
build failed; all it printed is in logs/build.log" err

# A step that succeeds shows no output of its command, runs in this shell, and keeps the log.
sets_variable() { echo 'much output'; variable=set; }
progress_step quiet 5 sets_variable >out 2>err
[[ $(cat out) =~ ^quiet:\ [0-9]+\ s$ ]] || fail "$(cat out)"
expect '' err
[[ $variable == set ]] || fail 'the function did not run in this shell'
expect 'much output' logs/build.log
progress_verbose=1 progress_step verbose 5 sets_variable >out
grep -qx 'much output' out || fail 'nothing shown with progress_verbose'

# The count of ninja and of ctest, and the time left, of which little counts as expected when half is done.
echo '[30/60] Building' >"$progress_log"
expect '30 60' <(progress_count)
echo ' 3/90 Test  #5: lock ....   Passed' >"$progress_log"
expect '3 90' <(progress_count)
echo '[30/60] Building' >"$progress_log"
progress_began_s=$((SECONDS - 20)) progress_expected=110
read -r percent left_s what < <(progress_state build 10 $((SECONDS - 20)))
[[ $what == 'build, 30 of 60' ]] || fail "$what"
# Half of it took 20 s, and 10 s were expected: 10 / 2 + 40 / 2 - 20 = 5 s, and 100 s for later steps.
((left_s >= 103 && left_s <= 107 && percent >= 14 && percent <= 17)) || fail "$percent % $left_s s"

# A failed test is named with its assertion and the command that repeats it; the sums are the last line.
cat >results.xml <<'END'
<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="(empty)" tests="3" failures="1" disabled="0" skipped="1">
  <testcase name="good" status="run"><system-out>a.cpp:1: FAILED: no</system-out></testcase>
  <testcase name="bad" status="fail"><failure message=""/><system-out>
-------------------------------------------------------------------------------
two is one
-------------------------------------------------------------------------------
a.cpp:1
...............................................................................

a.cpp:3: FAILED:
  CHECK( 2 == one )
with expansion:
  2 == 1

more
</system-out></testcase>
  <testcase name="lacking" status="notrun"><system-out>  skipped: no tmux
</system-out></testcase>
  <testcase name="absent" status="notrun"><skipped message=""/><system-out>Unable to find executable: /x</system-out></testcase>
  <testcase name="later" status="notrun"><skipped message=""/><system-out>Failed test dependencies: bad</system-out></testcase>
</testsuite>
END
results=("$source/tools/test_results.py")
python3 -B "${results[@]}" failures build-x results.xml >out
expect '
FAILED bad
  in the case "two is one"
  a.cpp:3: FAILED:
    CHECK( 2 == one )
  with expansion:
    2 == 1
  again: ctest --test-dir build-x -R '"'^bad\$'"' --output-on-failure

FAILED absent
  Unable to find executable: /x
  again: ctest --test-dir build-x -R '"'^absent\$'"' --output-on-failure' out
status=0
python3 -B "${results[@]}" sums results.xml missing.xml >out || status=$?
((status == 1)) || fail "status $status"
expect 'skipped: later (Failed test dependencies: bad)
skipped: lacking (no tmux)
1 passed, 3 failed, 2 skipped' out

# Failed tests run once more only if all of them judge what they record. What they report then counts.
mkdir recorded
cat >recorded/CTestTestfile.cmake <<'END'
add_test(bad false)
set_tests_properties(bad PROPERTIES LABELS "tool;recorded")
add_test(absent /x)
END
python3 -B "${results[@]}" disturbed recorded results.xml >out
expect '' out
sed '/"absent"/d' results.xml >disturbed.xml
python3 -B "${results[@]}" disturbed recorded disturbed.xml >out
expect '^(bad)$' out
echo '<testsuite><testcase name="bad" status="run"/></testsuite>' >disturbed.xml.again
python3 -B "${results[@]}" sums disturbed.xml >out || fail "$(cat out)"
grep -qx 'passed only alone, the second time: bad' out || fail "$(cat out)"
grep -q ' 0 failed, ' out || fail "$(cat out)"

# A test that has passed runs again only if its program, what that names, or its data have changed.
if command -v git >/dev/null; then  # which lists the data
mkdir -p project/tools
cp "$source"/tools/{tests_to_run,test_results}.py project/tools
cd project
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.21)
project(p CXX)
enable_testing()
foreach(name first second)
  add_executable(${name} ${name}.cpp)
  target_compile_definitions(${name} PRIVATE DATA="${CMAKE_SOURCE_DIR}/${name}.txt" FIRST="$<TARGET_FILE:first>")
  add_test(NAME ${name} COMMAND ${name})
endforeach()
add_test(NAME failing COMMAND second fails)
add_test(NAME script COMMAND ${CMAKE_COMMAND} -E compare_files ${CMAKE_SOURCE_DIR}/first.txt ${CMAKE_SOURCE_DIR}/first.txt)
set_tests_properties(second PROPERTIES LABELS "tool;sleeps")
END
echo '#include <cstdio>
int main() { return std::fopen(DATA, "r") == nullptr; }' >first.cpp
echo '#include <cstdio>
int main(int n, char**) { return n > 1 || std::fopen(DATA, "r") == nullptr || std::fopen(FIRST, "r") == nullptr; }' >second.cpp
touch first.txt second.txt
git init -q
echo build >.gitignore
cmake -G Ninja -B build . >/dev/null
# to_run FIRST OTHERS UNCHANGED: builds, and compares what has to run; then runs it.
to_run() {
  local choice first others
  cmake --build build >/dev/null
  choice=$(python3 -B tools/tests_to_run.py choose build --unchanged --test-dir build)
  [[ $choice == "$1"$'\n'"$2"$'\n'"$3" ]] || fail "not '$*': $choice"
  { read -r first; read -r others; } <<<"$choice"
  ctest --test-dir build -R "${first:-^$}|${others:-^$}" --output-junit ran.xml >/dev/null 2>&1 || true
  python3 -B tools/tests_to_run.py passed build build/ran.xml
}
to_run '^(second)$' '^(first|failing|script)$' 0
to_run '' '^(failing)$' 3
echo 2 >second.txt
to_run '^(second)$' '^(failing)$' 2
echo 'int unused = 1;' >>first.cpp
to_run '^(second)$' '^(first|failing)$' 1  # second names the program of first
echo 1 >first.txt
to_run '^(second)$' '^(first|failing|script)$' 0
cd ..
fi

# tools/test.sh lists its parts and refuses others.
"$source/tools/test.sh" --help >out
grep -Eq '^  asan +[0-9]+  ' out || fail 'no part asan'
status=0
"$source/tools/test.sh" --only nothing 2>err || status=$?
((status == 2)) && grep -q "no part is called 'nothing'" err || fail "status $status" "$(cat err)"
