#!/usr/bin/env bash
# Runs every test, on every engine scripts/engines.sh can get. IDEMCTL_ENGINES="redis-system valkey-9" names them instead.
# With CI=true an engine that cannot be had and is not left out by name fails the run. The tests run the binary that is built with
# them, or the one that IDEMCTL_TEST_BINARY names: the one of a release, say.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/steps.sh
. scripts/steps.sh

engines=$(scripts/engines.sh) || { note FAILED "engines"; exit 1; }

# The tests of contrib/vectors need Redis clients of other languages, and are skipped without them.
scripts/vectors.sh
for client in python node; do
  [ -e ".libraries/vectors/$client/pinned" ] || note skipped "the vectors with the client for $client (cannot be had on this machine)"
done

# What needs no server runs once, with the first engine.
what=(scripts/runners.sh --all)
path=$PATH
while IFS=$'\t' read -r -u 3 name server version; do
  if [ "$server" = - ]; then
    note skipped "tests on $name (cannot be had on this machine)"
    continue
  fi
  # In PATH as well, first, for the tests that leave finding a server to idemctl.
  PATH=$(dirname "$server"):$path
  step "tests on $version ($name)" env IDEMCTL_TEST_SERVER="$server" "${what[@]}"
  what=(scripts/runners.sh)
done 3<<<"$engines"
