#!/usr/bin/env bash
# Puts the reference homeserver (Debian's matrix-synapse) into a chroot, so that nothing of this machine changes.
# Needs root; does nothing when it is there already. The folder: $HEARTH_REFERENCE_DIR.
set -euo pipefail
dir=${HEARTH_REFERENCE_DIR:-/var/tmp/hearth-reference}
suite=${HEARTH_REFERENCE_SUITE:-sid}
root=$dir/root

[ -e "$dir/ready" ] && exit 0
mkdir -p "$dir"
exec >"$dir/setup.log" 2>&1
trap 'tail -n 30 "$dir/setup.log" >&3' ERR
exec 3>&2

command -v debootstrap || { apt-get update -qq; apt-get install -y -qq --no-install-recommends debootstrap; }
# The mirror that this machine takes its packages from, whichever form its sources have.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null |
  grep -oE 'https?://[^ ]+' | grep -v security | head -n 1)
rm -rf --one-file-system "$root"
debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" "$mirror"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
printf 'Acquire::Check-Valid-Until "false";\nAPT::Install-Recommends "false";\n' >"$root/etc/apt/apt.conf.d/90reference"
printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
cp /etc/resolv.conf "$root/etc/resolv.conf"
chroot "$root" apt-get update -q
DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 chroot "$root" apt-get install -y -q matrix-synapse
chroot "$root" apt-get clean
touch "$dir/ready"
