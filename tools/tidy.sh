#!/usr/bin/env bash
# Runs clang-tidy once on each file of a build folder.
#
# Usage: tools/tidy.sh BUILD_FOLDER [REGEX]
#
# Checks all source files of this checkout that BUILD_FOLDER compiles, and the library's headers;
# REGEX selects files by path. Files that need libtorch take a minute each, so they are checked only
# if REGEX contains torch. A file without findings is checked again only if it, a file that it
# includes, its flags, a file .clang-tidy or clang-tidy itself has changed. Ninja knows the included
# files once BUILD_FOLDER is built; until then, all files are checked. The keys of files without
# findings are stored in BUILD_FOLDER/tidy. Exit status: 0 if there are no findings, else 1.
#
# Environment: CLANG_TIDY (clang-tidy-22), JOBS (2).
set -euo pipefail

if (($# < 1 || $# > 2)); then
  sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
  exit 2
fi
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
regex=${2:-.}
export CLANG_TIDY=${CLANG_TIDY:-clang-tidy-22}
export work=$build/tidy
mkdir -p "$work/clean"
find "$work/clean" -type f -mtime +30 -delete

# Lists each file once. The files that a module of the tool compiles together are checked as one
# text, BUILD_FOLDER/tidy/together/MODULE/MODULE.cpp, because parsing the headers takes longer than
# the checks, and because clang's analyzer looks only at functions of the file that it is given.
# Tests that are also built with the single header are checked only with include/, because the
# single header may not exist yet. Of the headers that are compiled alone, only lotus.hpp is
# checked, because it includes all others. The library's headers are checked only there, and the
# tool's only with their modules: all other files include them like system headers, in which
# clang-tidy does not search. CMake writes one field per line.
rm -rf "$work/together"
mkdir -p "$work/together"
cp "$source/.clang-tidy" "$work/together/"
# catch.hpp is parsed only once for all tests, none of which is checked with NDEBUG, if there is a clang++ of the same
# version.
catch_header=$work/catch.pch
"${CLANG_TIDY/-tidy/++}" -std=c++17 -x c++-header "$source/tests/catch.hpp" -o "$catch_header" \
  2>/dev/null || catch_header=
regex=$regex source=$source/ build=$build/ together=$work/together/ catch_header=$catch_header awk '
  BEGIN {
    catch_header = ENVIRON["catch_header"]
    regex = ENVIRON["regex"]; source = ENVIRON["source"]; build = ENVIRON["build"]
    together = ENVIRON["together"]
  }
  function wanted(file) {
    if (index(file, build) == 1) return file ~ /\/alone\/lotus_lotus_hpp\.cpp$/
    if (index(file, source) != 1) return 0
    file = substr(file, length(source) + 1)
    return regex ~ /torch/ || file !~ /^(examples|bench|tests\/library)\/torch/
  }
  function entry(file, command,    room, own) {
    if (file in seen) return
    seen[file] = 1
    if (file !~ /\/lotus_lotus_hpp\.cpp$|\/include\/lotus\.cpp$/) {
      gsub(" -I" source "include ", " -isystem " source "include ", command)
      room = build "/tools/lotus-tool/rooms/"
      gsub(" -I" room, " -isystem " room, command)
      if (index(file, together) == 1) {
        own = file
        gsub(/.*\/|\.cpp$/, "", own)
        sub(" -isystem " room own " ", " -I" room own " ", command)
      }
    }
    if (catch_header != "" && command ~ / -I[^ ]*\/tests / && command !~ / -fno-exceptions / && file ~ /_test\.cpp$|\/tests\/tool\// && file !~ /\/torch/)
      sub(/ -c /, " -UNDEBUG -include-pch " catch_header "&", command)
    printf "%s{\n%s\n%s\n  \"file\": \"%s\"\n}", separator, directory, command, file
    separator = ",\n"
  }
  # Writes the text of a module, where each of its files starts in it, and a copy of the file
  # .clang-tidy in the folder of its first file, if there is one. `unity` is a file of CMake that
  # includes the files of the module.
  function module(unity,    line, name, folder, text, at, part, start, chosen) {
    name = unity
    sub(/\.dir\/Unity\/.*/, "", name)
    sub(/.*\//, "", name)
    folder = together name
    text = folder "/" name ".cpp"
    system("mkdir -p \"" folder "\"")
    at = 1
    while ((getline line < unity) > 0) {
      if (line !~ /^#include "/) continue
      gsub(/^#include "|"$/, "", line)
      if (!wanted(line)) continue
      if (line ~ regex) chosen = 1
      if (at == 1) {
        part = line
        sub(/\/[^\/]*$/, "", part)
        system("cp \"" part "/.clang-tidy\" \"" folder "\" 2>/dev/null")
      }
      print at, line > (folder "/starts")
      while ((getline part < line) > 0) {
        print part > text
        ++at
      }
      close(line)
    }
    close(unity)
    close(text)
    close(folder "/starts")
    if (!chosen) return
    start = index(command, unity)
    entry(text, substr(command, 1, start - 1) text substr(command, start + length(unity)))
  }
  /^  "directory": / { directory = $0 }
  # clang cannot read headers that g++ has precompiled; the files include them anyway. It refuses its
  # own precompiled header if that was compiled with another level of optimization.
  /^  "command": / {
    command = $0
    gsub(/ -Winvalid-pch| -include [^ ]*cmake_pch\.hxx| -O[0-3s]/, "", command)
  }
  /^  "file": / {
    file = $0
    sub(/^  "file": "/, "", file)
    sub(/",?$/, "", file)
    if (file ~ /\/Unity\/unity_[0-9]+_cxx\.cxx$/) module(file)
    else if (command !~ /\/test_single\.dir\/[^ ]* -c / && file ~ regex && wanted(file)) entry(file, command)
  }
  BEGIN { print "[" }
  END { print "\n]" }' "$build/compile_commands.json" >"$work/compile_commands.json"

# Deprecated functions that headers of g++ use themselves.
own_header=-Wno-deprecated-declarations
# The analyzer stops after this many steps in a function (by default 225,000). Nearly all findings
# come early, and even with 50,000 steps the analyzer takes four fifths of the time.
steps=max-nodes=10000
export own_header steps

# Writes a line "OBJECT HASHES" for each object file, with the hashes of all files that it was
# compiled from.
ninja -C "$build" -t deps >"$work/deps" 2>/dev/null || : >"$work/deps"
(cd "$build" && sed -n 's/^    //p' "$work/deps" | sort -u | xargs -r -d '\n' sha256sum || true) \
  >"$work/hashes" 2>/dev/null
awk 'NR == FNR { hash[$2] = substr($1, 1, 16); next }
     /^[^ ]/ { printf "%s%s", separator, substr($1, 1, length($1) - 1); separator = "\n" }
     /^ / { printf " %s", hash[$1] }
     END { print "" }' "$work/hashes" "$work/deps" >"$work/compiled_from"
export everywhere
everywhere=$("$CLANG_TIDY" --version && cd "$source" && git ls-files -z '*.clang-tidy' tools/tidy.sh |
  xargs -0 sha256sum)

# key FILE COMMAND: prints a hash of everything on which the findings depend; prints nothing if the
# included files are not known.
key() {
  local object=${2##* -o } included
  included=$(grep -m 1 -F "${object%% *} " "$work/compiled_from") || return 0
  printf '%s\n' "$1" "$2" "$included" "$everywhere" | sha256sum | cut -d ' ' -f 1
}

# in_files TEXT: reads findings; names the source file and its line where they name a line of the text
# of a module.
in_files() {
  awk -v text="$1:" -v starts="${1%/*}/starts" '
    BEGIN { while ((getline line < starts) > 0) { split(line, part, " "); first[++n] = part[1]; file[n] = part[2] } }
    index($0, text) == 1 {
      rest = substr($0, length(text) + 1)
      line = rest + 0
      for (i = n; i > 1 && first[i] + 0 > line; --i) {}
      sub(/^[0-9]+/, line - first[i] + 1, rest)
      print file[i] ":" rest
      next
    }
    { print }'
}

# check FILE COMMAND: runs clang-tidy on a file unless its key is known to have no findings.
check() {
  local file=$1 command name findings
  local checks=()
  # Each file of a module includes what it needs.
  [[ $file != "$work"/together/* ]] || checks=(--checks=-readability-duplicate-include)
  # Removes the escapes of JSON.
  command=$(sed -E 's/\\(.)/\1/g' <<<"$2")
  name=$(key "$file" "$command")
  if [[ -n $name && -e $work/clean/$name ]]; then
    touch "$work/clean/$name"
    return
  fi
  printf '%s\n' "$file" >>"$work/checked"
  if findings=$("$CLANG_TIDY" --quiet -p "$work" "${checks[@]}" "--extra-arg=$own_header" \
    --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang "--extra-arg=$steps" \
    "$file" 2>"$work/stderr.$$"); then
    [[ -z $name ]] || : >"$work/clean/$name"
  else
    printf '%s\n' "$file" >>"$work/unclean"
    [[ $file != "$work"/together/* ]] || findings=$(in_files "$file" <<<"$findings")
    printf '%s\n' "$findings" "$(grep -v ' generated\.$' "$work/stderr.$$")"
  fi
  rm -f "$work/stderr.$$"
}
export -f key in_files check

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
