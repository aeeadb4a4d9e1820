#!/usr/bin/env bash
# Runs the static tools of a release in other root file systems: Debian 11, 12 and 13, installed by debootstrap;
# one with musl and busybox, as in Alpine; and an empty one. The tool for aarch64 runs with qemu. In those that
# have its dependencies, installs and removes the Debian package.
# Usage, as root: tools/release/user_lands.sh [DIST [FOLDER]]. DIST is dist/ of tools/release.sh. Root file systems that
# exist in FOLDER are used again. Needs debootstrap and qemu-user-static.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
dist=$(realpath "${1:-dist}")
mirror=${MIRROR:-http://deb.debian.org/debian}
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
roots=$(realpath "${2:-$work}")

# make NAME ROOT: creates a root file system.
make() {
  local package
  case $1 in
    empty) mkdir "$2" ;;
    musl)
      mkdir "$work/packages"
      (cd "$work/packages" && apt-get -qq -o APT::Sandbox::User=root download busybox-static musl)
      mkdir "$2"
      for package in "$work"/packages/*.deb; do dpkg-deb --extract "$package" "$2"; done
      chroot "$2" /bin/busybox --install -s /bin
      ;;
    *) debootstrap --variant=minbase "$1" "$2" "$mirror" >/dev/null ;;
  esac
}

# try ROOT MACHINE COMMAND...: checks that the tool, started by COMMAND, prints the same as on this
# machine.
try() {
  local root=$1 command here=(/lotus/x86_64)
  [[ $2 == x86_64 ]] || here=(/lotus/qemu "/lotus/$2")
  shift 2
  for command in --version 'diagnose /lotus/text' 'stats /lotus/compact --json' 'report /lotus/text -o -'; do
    # shellcheck disable=SC2086 # the words of a command
    chroot "$root" "$@" $command >"$work/there"
    # shellcheck disable=SC2086
    chroot "$work/here" "${here[@]}" $command >"$work/expected"
    cmp "$work/there" "$work/expected"
  done
}

# put ROOT: copies the tools and a recording.
put() {
  local machine
  mkdir -p "$1/lotus"
  for machine in x86_64 aarch64; do
    cp "$dist"/lotus-tool-*-linux-"$machine" "$1/lotus/$machine"
  done
  cp -r tests/samples/0.1/text tests/samples/0.1/compact "$1/lotus"
  cp /usr/bin/qemu-aarch64-static "$1/lotus/qemu"
}

mkdir "$work/here"
put "$work/here"
grep -q 'batches in' <<<"$(chroot "$work/here" /lotus/x86_64 diagnose /lotus/text)"
for name in empty musl bullseye bookworm trixie; do
  root=$roots/user-land-$name
  [[ -e $root ]] || make "$name" "$root"
  put "$root"
  try "$root" x86_64 /lotus/x86_64
  try "$root" aarch64 /lotus/qemu /lotus/aarch64
  said="both tools"
  if [[ -x $root/usr/bin/dpkg ]]; then
    cp "$dist"/lotus_*_amd64.deb "$root/lotus/package.deb"
    if chroot "$root" dpkg --install /lotus/package.deb >"$work/dpkg" 2>&1; then
      try "$root" x86_64 lotus-tool
      said+=", the package"
    else
      said+=", not the package: $(grep -m1 'depends on' "$work/dpkg" | tr -s ' ')"
    fi
    chroot "$root" dpkg --purge lotus >/dev/null 2>&1
  fi
  rm -rf "$root/lotus"
  echo "$name: $said"
done
