#!/usr/bin/env bash
# Installs those of the named Debian packages that are missing. Usage: tools/packages.sh PACKAGE...
set -euo pipefail

missing=()
for package in "$@"; do
  status=$(dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null || true)
  [[ $status == *' installed' ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

echo "installing ${missing[*]}"
if ! command -v apt-get >/dev/null; then
  echo "no apt-get on this machine: please install these packages by hand" >&2
  exit 1
fi
apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq)
((EUID == 0)) || apt=(sudo "${apt[@]}")
"${apt[@]}" update
"${apt[@]}" install --yes --no-install-recommends "${missing[@]}" >/dev/null
