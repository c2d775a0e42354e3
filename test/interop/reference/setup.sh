#!/usr/bin/env bash
# Installs the reference homeserver (Debian's matrix-synapse) into a chroot. Outside of it, this machine gets only the
# package debootstrap. Needs root. Does nothing when the chroot is complete, and starts over after an interruption.
# Concurrent calls wait for the first one.
#
#   HEARTH_REFERENCE_DIR     target folder (default /var/tmp/hearth-reference)
#   HEARTH_REFERENCE_SUITE   Debian suite to install from (default sid)
#   HEARTH_REFERENCE_MIRROR  Debian mirror (default: the mirrors in this machine's apt sources)
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

# Removes what an interrupted run has left, including its mounts.
clean() {
  awk -v below="$1/" 'index($2, below) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r -n 1 umount
  rm -rf --one-file-system "$1"
}

# Lists the mirrors of apt's sources; apt parses both formats of them.
mirrors() {
  if [ -n "${HEARTH_REFERENCE_MIRROR:-}" ]; then
    echo "$HEARTH_REFERENCE_MIRROR"
  else
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v -- -security | awk '!seen[$0]++'
  fi
}

# debootstrap downloads without apt, and must use the same proxy.
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
# Forbids packages in the chroot to start services.
printf '#!/bin/sh\nexit 101\n' >"$new/usr/sbin/policy-rc.d"
chmod 755 "$new/usr/sbin/policy-rc.d"
# The mirror may be a snapshot whose release file has expired.
{
  printf 'Acquire::Check-Valid-Until "false";\nAPT::Install-Recommends "false";\nAcquire::Retries "3";\n'
  [ -z "${http_proxy:-}" ] || printf 'Acquire::http::Proxy "%s";\n' "$http_proxy"
  [ -z "${https_proxy:-}" ] || printf 'Acquire::https::Proxy "%s";\n' "$https_proxy"
} >"$new/etc/apt/apt.conf.d/90reference"
# The reference server must resolve only its own name and that of the Hearth under test.
printf '127.0.0.1 localhost hearth.localhost\n' >"$new/etc/hosts"
cp /etc/resolv.conf "$new/etc/resolv.conf"
# dpkg need not wait until each file is written to the disk: an interrupted installation starts over.
echo force-unsafe-io >"$new/etc/dpkg/dpkg.cfg.d/unsafe-io"
inside apt-get update -q
inside apt-get install -y -q matrix-synapse
inside apt-get clean
inside python3 -c 'import synapse.app.homeserver'
clean "$root"
mv "$new" "$root"
touch "$dir/ready"
