#!/usr/bin/env bash
# Builds idemctl and shows its main job on a private server that is gone afterwards. Touches no other Redis and no file of the user.
set -euo pipefail
cd "$(dirname "$0")/.."

engine=$(scripts/engines.sh --any)
server=$(cut -f 2 <<<"$engine")
echo "Building idemctl (the first time takes a minute) ..." >&2
# The dev profile: an optimized build takes four times as long, and the tour is no faster with one.
cargo build --locked --quiet
PATH=${CARGO_TARGET_DIR:-$PWD/target}/debug:$PATH
# Last: what PATH already has goes first.
PATH=$PATH:$(dirname "$server")
export PATH

# The demo is the same for everyone: no settings of the user, and backups and audit log in a folder that goes away.
home=$(mktemp -d "${TMPDIR:-/tmp}/idemctl-demo.XXXXXX")
trap 'rm -rf "$home"' EXIT
export XDG_CONFIG_HOME=$home XDG_STATE_HOME=$home XDG_DATA_HOME=$home XDG_CACHE_HOME=$home
for name in $(compgen -e IDEMCTL_) REDIS_URL REDISCLI_AUTH; do unset "$name"; done

idemctl sandbox --seed 3 -- sh scripts/demo-tour.sh
