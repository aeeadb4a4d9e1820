#!/usr/bin/env bash
# Runs clang-tidy over the files of a build folder, each of them once.
#
#   tools/tidy.sh BUILD_FOLDER [REGEX]
#
# All source files of this checkout that BUILD_FOLDER compiles, and the library's headers; REGEX
# picks some of them by their path. What needs libtorch, a minute each, is checked only where REGEX
# names torch. A file that was clean is checked again only when what it is made of has changed: its
# preprocessed text, its flags, the checks in force or clang-tidy itself. Clean files are remembered
# in BUILD_FOLDER/tidy. Exit status: 0 when all are clean, else 1.
#
# Environment: CLANG_TIDY and CLANG (clang-tidy-22, clang++-22), JOBS (2).
set -euo pipefail

if (($# < 1 || $# > 2)); then
  sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
  exit 2
fi
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
regex=${2:-.}
export CLANG_TIDY=${CLANG_TIDY:-clang-tidy-22} CLANG=${CLANG:-clang++-22}
export work=$build/tidy
mkdir -p "$work/clean"
find "$work/clean" -type f -mtime +30 -delete

# One entry per file, also of those that are compiled together. What is built against the single
# header too is checked as it stands: that header need not be there yet. Of the headers made to be
# compiled alone, lotus.hpp has all others. CMake writes one field per line.
regex=$regex source=$source/ build=$build/ awk '
  BEGIN { regex = ENVIRON["regex"]; source = ENVIRON["source"]; build = ENVIRON["build"] }
  function wanted(file) {
    if (index(file, build) == 1) return file ~ /\/alone\/lotus_lotus_hpp\.cpp$/
    if (index(file, source) != 1) return 0
    file = substr(file, length(source) + 1)
    return regex ~ /torch/ || file !~ /^(examples|bench|tests\/library)\/torch/
  }
  function entry(file, command) {
    if (file !~ regex || !wanted(file) || file in seen) return
    seen[file] = 1
    printf "%s{\n%s\n%s\n  \"file\": \"%s\"\n}", separator, directory, command, file
    separator = ",\n"
  }
  # CMake writes a file that includes those of a target.
  function parts(together,    line, start, command_start, command_end) {
    start = index(command, together)
    command_start = substr(command, 1, start - 1)
    command_end = substr(command, start + length(together))
    while ((getline line < together) > 0) {
      if (line !~ /^#include "/) continue
      gsub(/^#include "|"$/, "", line)
      entry(line, command_start line command_end)
    }
  }
  /^  "directory": / { directory = $0 }
  /^  "command": /   { command = $0 }
  /^  "file": / {
    file = $0
    sub(/^  "file": "/, "", file)
    sub(/",?$/, "", file)
    if (file ~ /\/Unity\/unity_[0-9]+_cxx\.cxx$/) parts(file)
    else if (command !~ /\/test_single_[^ ]* -c /) entry(file, command)
  }
  BEGIN { print "[" }
  END { print "\n]" }' "$build/compile_commands.json" >"$work/compile_commands.json"

tool_version=$("$CLANG_TIDY" --version)
# The preprocessed text has no comments, and these ones say something to clang-tidy.
spoken_comments=$(cd "$source" &&
  grep -rhE --include='*.[ch]pp' 'NOLINT|/\*[A-Za-z_]+=\*/' include tools tests bench examples || true)
# What g++'s own headers use of it.
own_header=-Wno-deprecated-declarations
# The analyzer gives a function up after so many steps (225,000 otherwise): of what it finds, nearly
# all is found early, and some files took it a minute.
steps=max-nodes=50000
export tool_version spoken_comments own_header steps

# key FILE COMMAND: the name of all that the findings depend on.
key() {
  local flags
  # Without the compiler's name and what is written where.
  flags=-${2#* -}
  flags=${flags% -o *}
  {
    printf '%s\n' "$1" "$flags" "$tool_version" "$spoken_comments" "$steps"
    "$CLANG_TIDY" -p "$work" --dump-config "$1"
    # With the macros as they are defined and the includes as they stand: some checks read them.
    eval "$CLANG $flags -w -E -P -dD -dI $1"
  } | sha256sum | cut -d ' ' -f 1
}

# check FILE COMMAND
check() {
  local file=$1 command name findings
  # From JSON to what the shell reads.
  command=$(sed -E 's/\\(.)/\1/g' <<<"$2")
  name=$(key "$file" "$command") || name=
  if [[ -n $name && -e $work/clean/$name ]]; then
    touch "$work/clean/$name"
    return
  fi
  printf '%s\n' "$file" >>"$work/checked"
  if findings=$("$CLANG_TIDY" --quiet -p "$work" "--extra-arg=$own_header" \
    --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang "--extra-arg=$steps" \
    "$file" 2>"$work/stderr.$$"); then
    [[ -z $name ]] || : >"$work/clean/$name"
  else
    printf '%s\n' "$file" >>"$work/unclean"
    printf '%s\n' "$findings" "$(grep -v ' generated\.$' "$work/stderr.$$")"
  fi
  rm -f "$work/stderr.$$"
}
export -f key check

: >"$work/checked"
: >"$work/unclean"
sed -nE 's/^  "(command|file)": "(.*)",?$/\2/p' "$work/compile_commands.json" |
  sed 's/",$//' >"$work/entries"
files=$(($(wc -l <"$work/entries") / 2))
if ((files == 0)); then
  echo "no file of $build matches $regex" >&2
  exit 1
fi
xargs -a "$work/entries" -d '\n' -P "${JOBS:-2}" -n 2 bash -c 'set -euo pipefail; check "$2" "$1"' _
printf '%d files: %d checked, the others unchanged; %d with findings\n' \
  "$files" "$(wc -l <"$work/checked")" "$(wc -l <"$work/unclean")"
[[ ! -s $work/unclean ]]
