#!/usr/bin/env bash
# Runs the tests of tests/ on the server program IDEMCTL_TEST_SERVER: with cargo-nextest where it is installed; elsewhere with
# cargo test, the slow runners beside the others. With --all the unit tests and the tests in documentation as well.
set -euo pipefail
cd "$(dirname "$0")/.."

which=(--test '*')
[ "${1:-}" != --all ] || which+=(--lib --bins)

if cargo nextest --version >/dev/null 2>&1; then
  cargo nextest run --locked "${which[@]}"
else
  slow=(--test clusters --test faults --test storm)
  quick=()
  [ "${1:-}" != --all ] || quick=(--lib --bins)
  for runner in tests/*/main.rs; do
    name=$(basename "$(dirname "$runner")")
    [[ " ${slow[*]} " = *" $name "* ]] || quick+=(--test "$name")
  done
  cargo test --locked --no-run "${which[@]}"
  # Two times four tests at a time, where one runner alone takes six.
  export RUST_TEST_THREADS=${RUST_TEST_THREADS:-4}
  output=$(mktemp "${TMPDIR:-/tmp}/idemctl-tests.XXXXXX")
  trap 'rm -f "$output"' EXIT
  cargo test --locked --no-fail-fast "${slow[@]}" >"$output" 2>&1 &
  beside=$! code=0
  cargo test --locked --no-fail-fast "${quick[@]}" || code=$?
  wait "$beside" || code=$?
  cat "$output"
  [ "$code" -eq 0 ] || exit "$code"
fi
[ "${1:-}" != --all ] || cargo test --locked --doc
