#!/usr/bin/env bash
# Tests tools/packages.sh with an apt-get that plays what can go wrong: each ends with one line.
# Usage: packages_test.sh SOURCE_FOLDER FOLDER
set -euo pipefail
script=$1/tools/packages.sh
folder=$2
rm -rf -- "$folder"
mkdir -p -- "$folder/bin"

# The stand-ins read what they have to play from the environment, and note what was asked of them.
stand_in() { printf '#!/bin/sh\n%s\n' "$2" >"$folder/bin/$1"; chmod +x "$folder/bin/$1"; }
# shellcheck disable=SC2016 # expanded by the stand-in
stand_in dpkg-query 'case " $INSTALLED " in *" $3 "*) echo "install ok installed" ;; *) exit 1 ;; esac'
# shellcheck disable=SC2016
stand_in apt-get '
echo "$@" >>"$ASKED"
case "$*" in
  *--simulate*) case "$*" in *unknown*) exit 100 ;; esac; [ -z "$NO_LISTS" ] || [ -e "$ASKED.updated" ] ;;
  *update*) touch "$ASKED.updated"; echo "$UPDATE_SAYS" ;;
  *) [ -e "$ASKED.updated" ] || [ -z "$OLD_LISTS" ] || { echo "E: Failed to fetch x  404  Not Found"; exit 100; }
     echo "$INSTALL_SAYS"; [ -z "$INSTALL_SAYS" ] ;;
esac'
# shellcheck disable=SC2016
stand_in sudo 'case $1 in -n) exit 0 ;; esac; exec "$@"'
# shellcheck disable=SC2016
stand_in g++ 'echo "${GXX:-12.2.0}"'
# shellcheck disable=SC2016
stand_in cmake 'echo "cmake version ${CMAKE:-3.25.1}"'

# expect STATUS PATTERN ASKED [SETTING...] SCRIPT PACKAGE...: the exit status, what is printed, and what apt-get
# was asked to do, one letter per call (s: simulate, u: update, i: install).
expect() {
  local status=0 said asked wanted=("$1" "$2" "$3")
  shift 3
  rm -f -- "$folder"/asked*
  touch "$folder/asked"
  said=$(env PATH="$folder/bin:$PATH" "ASKED=$folder/asked" INSTALLED=there "$@" 2>&1 </dev/null) || status=$?
  asked=$(sed 's/.*--simulate.*/s/; s/.*update$/u/; s/.*install .*/i/' "$folder/asked" | tr -d '\n')
  # shellcheck disable=SC2053 # a pattern
  if [[ $status != "${wanted[0]}" || $said != ${wanted[1]} || $asked != "${wanted[2]}" ]]; then
    printf 'failed: %s\nexit status %s, asked %s, printed: %s\n' "$*" "$status" "$asked" "$said" >&2
    exit 1
  fi
}

expect 0 '' '' "$script" there
expect 0 'installing new' si "$script" there new
expect 0 'installing new' susi NO_LISTS=1 "$script" new
expect 0 'installing new' siusi OLD_LISTS=1 "$script" new
expect 1 $'installing new unknown\npackages: * has no package unknown' susss "$script" new unknown
expect 1 $'installing new\npackages: the disk is full: no room for new' si \
  'INSTALL_SAYS=E: You don'\''t have enough free space in /var/cache/apt/archives/.' "$script" new
expect 1 $'installing new\npackages: no network (Temporary failure resolving x), so these cannot be installed: new' \
  si 'INSTALL_SAYS=Err:1 Temporary failure resolving x' "$script" new
expect 1 $'installing new\npackages: apt-get cannot install new: dpkg was interrupted' si \
  'INSTALL_SAYS=E: dpkg was interrupted' "$script" new
expect 1 $'installing new\npackages: apt-get cannot install new: Failed to fetch x' susi NO_LISTS=1 \
  'INSTALL_SAYS=E: Failed to fetch x' "$script" new
expect 0 '' '' INSTALLED=g++ "$script" g++
expect 1 'packages: g++ 9.4.0 is too old: 11 or newer is needed*' '' INSTALLED=g++ GXX=9.4.0 "$script" g++
expect 1 'packages: cmake 3.18.4 is too old: 3.21 or newer is needed*' '' INSTALLED=cmake CMAKE=3.18.4 "$script" cmake
