#!/usr/bin/env bash
# Lets the storm of tests/storm rage for MINUTES (10), on the engine ENGINE (as scripts/engines.sh names them; the first to be
# had where none is named) and in the mode MODE: server, cluster, cluster-replicas or sentinel (server). SEED chooses another
# course of chance.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -n "${ENGINE:-}" ]; then
  line=$(IDEMCTL_ENGINES=$ENGINE scripts/engines.sh)
elif [ -n "${IDEMCTL_TEST_SERVER:-}" ]; then
  line=$(printf 'given\t%s\t%s' "$IDEMCTL_TEST_SERVER" "$("$IDEMCTL_TEST_SERVER" --version)")
else
  line=$(scripts/engines.sh --any)
fi
IDEMCTL_TEST_SERVER=$(cut -f 2 <<<"$line")
echo "soak: ${MINUTES:=10} minutes on $(cut -f 3 <<<"$line"), mode ${MODE:=server}" >&2
export IDEMCTL_TEST_SERVER IDEMCTL_STORM_MODE=$MODE IDEMCTL_STORM_SECONDS=$((MINUTES * 60))
[ -z "${SEED:-}" ] || export IDEMCTL_STORM_SEED=$SEED
exec cargo test --locked --test storm -- --nocapture --ignored --exact idemctl_changes_only_what_it_was_shown
