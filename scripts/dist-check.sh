#!/usr/bin/env bash
# Builds the static binaries and the .deb of this machine, and uses them where nothing else is: the binary in an empty root, the package
# in a Debian root with its manual pages and its TAB, and the binary of the other architecture in an emulator. Needs root for the roots;
# without, says what was left out. On macOS it builds and uses the two binaries of macOS.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/steps.sh
. scripts/steps.sh

# of TARGET: its binary.
of() { echo "${CARGO_TARGET_DIR:-target}/$1/${IDEMCTL_PROFILE:-release}/idemctl"; }

if [ "$(uname -s)" = Darwin ]; then
  step "binaries" scripts/dist.sh binary
  # A Mac with an Apple processor runs both.
  for target in aarch64-apple-darwin x86_64-apple-darwin; do
    step "an incident on $target" scripts/dist-steps.sh incident "" "$(of "$target")"
  done
  exit
fi
here=$(uname -m)-unknown-linux-musl
# IDEMCTL_NATIVE leaves the other architecture out.
if ! IDEMCTL_TARGETS=${IDEMCTL_NATIVE:+$here} scripts/dist.sh tools; then
  note skipped "packages (this machine has no zig for the targets, and cannot get it)"
  exit
fi
case $here in x86_64-*) other=aarch64-unknown-linux-musl ;; *) other=x86_64-unknown-linux-musl ;; esac
step "static binary and deb" env IDEMCTL_TARGETS="$here" scripts/dist.sh binary deb
binary=$(of "$here")
package=$(ls target/dist/idemctl_*_"$(dpkg --print-architecture)".deb)

step "no path of the builder" scripts/dist-steps.sh no-paths "$binary"
step "no shared library" scripts/dist-steps.sh static "$binary"
emulator=
[ -n "${IDEMCTL_NATIVE:-}" ] || emulator=$(command -v "qemu-${other%%-*}" || command -v "qemu-${other%%-*}-static" || true)
if [ -n "$emulator" ]; then
  step "static binary of the other architecture" env IDEMCTL_TARGETS="$other" scripts/dist.sh binary
  step "no shared library of the other architecture" scripts/dist-steps.sh static "$(of "$other")"
  step "an incident on the other architecture" scripts/dist-steps.sh incident "$emulator" "$(of "$other")"
else
  note skipped "$other (IDEMCTL_NATIVE, or no qemu-user here)"
fi
step "an incident" scripts/dist-steps.sh incident "" "$binary"
if command -v lintian >/dev/null; then
  step "lintian" lintian --fail-on error,warning "$package"
else
  note skipped "lintian (not here)"
fi
if [ "$(id -u)" -ne 0 ]; then
  note skipped "roots (needs root)"
  exit
fi
step "an empty root" scripts/dist-steps.sh empty-root "$binary"
if command -v debootstrap >/dev/null; then
  step "a Debian root" scripts/dist-steps.sh debian-root "$package"
else
  note skipped "a Debian root (no debootstrap here)"
fi
