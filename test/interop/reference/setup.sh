#!/usr/bin/env bash
# Puts the reference homeserver (Debian's matrix-synapse) into a chroot, so that nothing of this machine changes.
# Needs root; does nothing when it is there already, and begins anew when it was interrupted. Several may call it at
# once: they wait for the first.
#
#   HEARTH_REFERENCE_DIR     where to (default /var/tmp/hearth-reference)
#   HEARTH_REFERENCE_SUITE   Debian's suite that has it (default sid)
#   HEARTH_REFERENCE_MIRROR  Debian's mirror (default: those that this machine takes its packages from)
set -euo pipefail
dir=${HEARTH_REFERENCE_DIR:-/var/tmp/hearth-reference}
suite=${HEARTH_REFERENCE_SUITE:-sid}
root=$dir/root
new=$dir/new

[ -e "$dir/ready" ] && exit 0
[ "$(id -u)" = 0 ] || { echo "setup.sh: only root can install the reference server" >&2; exit 1; }
mkdir -p "$dir"
exec 9>"$dir/lock"
flock 9
[ -e "$dir/ready" ] && exit 0
exec 3>&2 >"$dir/setup.log" 2>&1
trap 'status=$?; [ $status = 0 ] || tail -n 30 "$dir/setup.log" >&3' EXIT

# What an interrupted run has left behind, with what may still be mounted in it.
clean() {
  awk -v below="$1/" 'index($2, below) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r -n 1 umount
  rm -rf --one-file-system "$1"
}

# As apt itself understands its sources, whichever form they have.
mirrors() {
  if [ -n "${HEARTH_REFERENCE_MIRROR:-}" ]; then
    echo "$HEARTH_REFERENCE_MIRROR"
  else
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v -- -security | awk '!seen[$0]++'
  fi
}

# debootstrap asks for the first thing by itself and must take the way that apt takes.
eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)"
[ -z "${http_proxy:-}" ] || export http_proxy
[ -z "${https_proxy:-}" ] || export https_proxy

if ! command -v debootstrap; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap
fi
for mirror in $(mirrors); do
  clean "$new"
  debootstrap --variant=minbase --include=ca-certificates "$suite" "$new" "$mirror" && break
done 9>&-
if [ ! -x "$new/usr/bin/apt-get" ] || [ -e "$new/debootstrap" ]; then
  echo "none of the mirrors could be used: $(mirrors | tr '\n' ' ')"
  exit 1
fi

inside() { DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 chroot "$new" "$@" 9>&-; }
# Nothing in there may start a service.
printf '#!/bin/sh\nexit 101\n' >"$new/usr/sbin/policy-rc.d"
chmod 755 "$new/usr/sbin/policy-rc.d"
# A mirror may be a snapshot with old dates.
{
  printf 'Acquire::Check-Valid-Until "false";\nAPT::Install-Recommends "false";\nAcquire::Retries "3";\n'
  [ -z "${http_proxy:-}" ] || printf 'Acquire::http::Proxy "%s";\n' "$http_proxy"
  [ -z "${https_proxy:-}" ] || printf 'Acquire::https::Proxy "%s";\n' "$https_proxy"
} >"$new/etc/apt/apt.conf.d/90reference"
# The one name besides its own that it must find is that of the Hearth under test.
printf '127.0.0.1 localhost hearth.localhost\n' >"$new/etc/hosts"
cp /etc/resolv.conf "$new/etc/resolv.conf"
inside apt-get update -q
inside apt-get install -y -q matrix-synapse
inside apt-get clean
inside python3 -c 'import synapse.app.homeserver'
clean "$root"
mv "$new" "$root"
touch "$dir/ready"
