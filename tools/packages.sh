#!/usr/bin/env bash
# Installs those of the named Debian packages that are missing, and checks that g++ and CMake, if they
# are named, are new enough. Prints one line if that is impossible. Does nothing if all are there.
# Usage: tools/packages.sh [--permission] PACKAGE...
#   --permission  only asks for the password that installing would need
set -euo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive

only_permission=
if [[ ${1:-} == --permission ]]; then
  only_permission=1
  shift
fi

fail() {
  echo "packages: $1" >&2
  exit 1
}

# Fails if the program that the package provides is older than the version. What is not there was not
# wanted.
require_version() {
  local package=$1 oldest=$2 found=$3
  [[ " ${wanted[*]} " == *" $package "* && -n $found ]] || return 0
  [[ $(printf '%s\n' "$oldest" "$found" | sort -V | head -n 1) == "$oldest" ]] ||
    fail "$package $found is too old: $oldest or newer is needed, which Debian 12 and Ubuntu 22.04 have"
}

check_versions() {
  require_version g++ 11 "$(g++ -dumpfullversion 2>/dev/null || true)"
  require_version cmake 3.21 "$(cmake --version 2>/dev/null | sed -n '1s/.* //p' || true)"
}

wanted=("$@")
missing=()
for package in "$@"; do
  status=$(dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null || true)
  [[ $status == *' installed' ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  check_versions
  exit 0
fi

command -v apt-get >/dev/null ||
  fail "no apt-get on this machine; please install what these packages of Debian contain: ${missing[*]}"
apt=(apt-get -qq --yes --no-install-recommends -o DPkg::Lock::Timeout=120)
if ((EUID != 0)); then
  by_hand="root has to run: apt-get install ${missing[*]}"
  command -v sudo >/dev/null || fail "packages are missing, and there is no sudo; $by_hand"
  if ! sudo -n true 2>/dev/null; then
    { : </dev/tty; } 2>/dev/null || fail "packages are missing, and sudo asks for a password but there is no terminal; $by_hand"
    echo "to install ${missing[*]}, sudo needs your password"
    sudo -v || fail "packages are missing, and sudo refused; $by_hand"
  fi
  apt=(sudo env LC_ALL=C DEBIAN_FRONTEND=noninteractive "${apt[@]}")
fi
[[ -z $only_permission ]] || exit 0

log=$(mktemp 2>/dev/null) || fail "the disk is full: no room for a file in ${TMPDIR:-/tmp}"
trap 'rm -f -- "$log"' EXIT

can_install() { apt-get -qq --simulate --no-install-recommends install "$@" >/dev/null 2>&1; }

# Prints why the commands that wrote the log failed.
reason() {
  local line
  if grep -Eq 'No space left on device|enough free space' "$log"; then
    echo "the disk is full: no room for ${missing[*]}"
  elif line=$(grep -Eom 1 '(Temporary failure|Could not) (resolve|resolving|connect to) [^ ]*|Connection timed out|Unable to connect to [^ ]*' "$log"); then
    echo "no network ($line), so these cannot be installed: ${missing[*]}"
  else
    line=$(grep -m 1 '^E: ' "$log") || line=$(tail -n 1 "$log")
    echo "apt-get cannot install ${missing[*]}: ${line#E: }"
  fi
}

# Fetching the lists takes seconds, so it is done only if a package is unknown, or if a list is so old
# that its packages are no longer there.
update() {
  "${apt[@]}" update >"$log" 2>&1 || fail "$(reason)"
  local package unknown=()
  can_install "${missing[@]}" && return
  for package in "${missing[@]}"; do
    can_install "$package" || unknown+=("$package")
  done
  ! grep -q 'Failed to fetch' "$log" || fail "$(reason)"
  fail "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release) has no package ${unknown[*]:-that fits ${missing[*]}}"
}

echo "installing ${missing[*]}"
updated=
if ! can_install "${missing[@]}"; then
  update
  updated=1
fi
if ! "${apt[@]}" install "${missing[@]}" >"$log" 2>&1; then
  [[ -z $updated ]] && grep -q 'Failed to fetch' "$log" || fail "$(reason)"
  update
  "${apt[@]}" install "${missing[@]}" >"$log" 2>&1 || fail "$(reason)"
fi
check_versions
