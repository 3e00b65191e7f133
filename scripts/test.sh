#!/usr/bin/env bash
# Runs tests.
#
#   scripts/test.sh            every test but the long ones, on one engine
#   scripts/test.sh --engines  the tests whose outcome depends on the engine, on all other engines
#   scripts/test.sh --long     the long tests, on one engine
#
# The one engine is the one at hand, else the first to be had (scripts/engines.sh --any). IDEMCTL_ENGINES="redis-system valkey-9"
# names the engines instead. The tests run the binary that is built with them, or the one that IDEMCTL_TEST_BINARY names.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/steps.sh
. scripts/steps.sh

which=${1:-}
if [ -n "${IDEMCTL_ENGINES:-}" ]; then
  engines=$(scripts/engines.sh) || { note FAILED "engines"; exit 1; }
else
  first=$(scripts/engines.sh --any) || { note FAILED "engines"; exit 1; }
  engines=$first
  if [ "$which" = --engines ]; then
    engines=$(scripts/engines.sh | grep -v -F "$(cut -f 3 <<<"$first")") || { note FAILED "engines"; exit 1; }
  fi
fi

if [ -z "$which" ]; then
  # The tests of contrib/vectors need Redis clients of other languages, and are skipped without them.
  scripts/vectors.sh
  for client in python node; do
    [ -e ".libraries/vectors/$client/pinned" ] || note skipped "the vectors with the client for $client (cannot be had on this machine)"
  done
fi

argument=${which/--engines/--engine}
path=$PATH
while IFS=$'\t' read -r -u 3 name server version; do
  if [ "$server" = - ]; then
    note skipped "tests on $name (cannot be had on this machine)"
    continue
  fi
  # In PATH as well, first, for the tests that leave finding a server to idemctl.
  PATH=$(dirname "$server"):$path
  step "tests on $version ($name)" env IDEMCTL_TEST_SERVER="$server" scripts/runners.sh ${argument:+"$argument"}
done 3<<<"$engines"
