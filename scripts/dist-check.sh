#!/usr/bin/env bash
# Builds the static binary and the .deb, and uses both where nothing else is: the binary in an empty root, the package in a Debian
# root with its manual pages and its TAB. Needs root for the roots; without, says what was left out.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/steps.sh
. scripts/steps.sh

if ! scripts/dist.sh tools; then
  note skipped "packages (this machine has no musl, and cannot get it)"
  exit
fi
step "static binary and deb" scripts/dist.sh binary deb
binary=${CARGO_TARGET_DIR:-target}/$(uname -m)-unknown-linux-musl/${IDEMCTL_PROFILE:-release}/idemctl
package=$(ls target/dist/*.deb)

step "no path of the builder" scripts/dist-steps.sh no-paths "$binary"
step "no shared library" scripts/dist-steps.sh static "$binary"
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
