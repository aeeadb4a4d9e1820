#!/usr/bin/env bash
# Unpacks into FOLDER, which must not exist, Debian's arm64 packages of the libraries that lotus-tool
# is linked with: the system root of a cross build. The machine's own packages, and its list of
# architectures, stay as they are. Usage: tools/release/arm64_root.sh FOLDER
set -euo pipefail

if (($# != 1)) || [[ -e $1 ]]; then
  echo "usage: arm64_root.sh FOLDER, which must not exist" >&2
  exit 2
fi
packages=(libbz2-dev libcli11-dev libdw-dev libelf-dev libjs-chart.js liblzma-dev libprotozero-dev
  libsqlite3-dev libzstd-dev nlohmann-json3-dev zlib1g-dev)
mkdir -p "$1"
root=$(cd "$1" && pwd)
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
mkdir -p "$state"/{lists,archives}/partial
: >"$state/status"
# apt uses a separate state, as if the machine were an arm64 one on which nothing is installed.
apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$state"
  -o "Dir::State::lists=$state/lists" -o "Dir::State::status=$state/status" -o "Dir::Cache=$state"
  -o APT::Sandbox::User=root)
"${apt[@]}" update
(cd "$state/archives" && "${apt[@]}" download "${packages[@]}")
for package in "$state"/archives/*.deb; do dpkg-deb --extract "$package" "$root"; done
