#!/usr/bin/env bash
# Runs a script of this checkout as a stranger would: in fresh root file systems of Debian, as root
# without sudo and as a user with it, from a clone, without a terminal. Prints a table: minutes,
# packages that were installed, what git status shows, and the last line that was printed.
#
# Usage: tools/fresh_machine.sh [--folder DIR] [--script demo.sh|test.sh] [RELEASE:USER...]
#   RELEASE:USER  default: bookworm:root bookworm:user trixie:root trixie:user
#   --folder      where the file systems are made, and kept as RELEASE.tar; default: /var/tmp/lotus_roots
#
# Needs root, debootstrap and the network. Clones the last commit, so commit first. Nothing stays
# mounted, because each run has mounts of its own.
set -euo pipefail
repository=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
folder=/var/tmp/lotus_roots
script=demo.sh
while [[ ${1:-} == --* ]]; do
  case $1 in
    --folder) folder=$2 ;;
    --script) script=$2 ;;
    *) sed -n '/^# Usage/,/^# Needs/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
  esac
  shift 2
done
(($#)) || set -- bookworm:root bookworm:user trixie:root trixie:user
((EUID == 0)) || { echo "fresh_machine: must be started by root" >&2; exit 2; }
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

# Makes the smallest system that a container has, and git to clone with.
make_archive() {
  local release=$1
  [[ -e $folder/$release.tar ]] && return
  command -v debootstrap >/dev/null || { echo "fresh_machine: needs debootstrap" >&2; exit 2; }
  debootstrap --variant=minbase "$release" "$folder/$release.new" "$mirror" >"$folder/$release.log"
  rm -rf "$folder/$release.new"/var/lib/apt/lists/* "$folder/$release.new"/var/cache/apt/archives/*.deb
  tar -C "$folder/$release.new" -cf "$folder/$release.tar" .
  rm -rf -- "$folder/$release.new"
}

# inside ROOT COMMAND...: runs a command in the file system, with mounts that end with it.
inside() {
  # shellcheck disable=SC2016 # expanded by the inner shell
  unshare --mount --pid --fork --propagation private bash -c '
    root=$1; shift
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    exec chroot "$root" "$@"' _ "$@"
}

packages_in() { inside "$1" dpkg-query --show --showformat='${Package}\n' | wc -l; }

# Runs the script in a new file system, and prints a row of the table.
try() {
  local release=$1 user=$2 root=$folder/$1-$2 home=/root began packages status=0 seconds
  rm -rf -- "$root"
  mkdir -p -- "$root"
  tar -C "$root" -xf "$folder/$release.tar"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  if [[ $user == user ]]; then
    home=/home/user
    inside "$root" sh -c 'apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes \
      --no-install-recommends sudo && useradd --create-home user &&
      echo "user ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/user' >"$folder/setup.log" 2>&1
  fi
  git clone --quiet "file://$repository" "$root$home/lotus"
  inside "$root" chown -R "$user:" "$home/lotus"
  packages=$(packages_in "$root")
  began=$SECONDS
  inside "$root" su "$user" -c "cd && lotus/tools/$script" >"$root.txt" 2>&1 </dev/null || status=$?
  seconds=$((SECONDS - began))
  printf '| %s, %s | %d:%02d | %d | %s | %s | %s |\n' "$release" "$user" $((seconds / 60)) $((seconds % 60)) \
    $(($(packages_in "$root") - packages)) "$status" \
    "$(git -c safe.directory='*' -C "$root$home/lotus" status --porcelain | wc -l)" \
    "$(grep . "$root.txt" | tail -n 1)"
}

mkdir -p -- "$folder"
echo "| $script on | min:s | packages | exit status | lines of git status | last line |"
echo '|---|---|---|---|---|---|'
for one; do
  make_archive "${one%:*}"
  try "${one%:*}" "${one#*:}"
done
