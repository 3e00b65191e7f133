#!/usr/bin/env bash
# Runs the tests of tests/ on the server program IDEMCTL_TEST_SERVER: with cargo-nextest where it is installed; elsewhere with
# cargo test, the slow runners beside the others. With --all what needs no server as well: the unit tests, those of the project's own
# files, and those in documentation. With --build only builds all of these.
set -euo pipefail
cd "$(dirname "$0")/.."

all=false
[ "$#" -eq 0 ] || all=true
# Tests that take minutes, and whose outcome does not depend on the engine, run with the first engine only. They cover the checker
# and the judgement of explore, services with mistakes, the JSON and the commands that idemctl prints, the distances of fields, its memory, and the
# completions of shells. Other tests of explore execute its scripts on each engine.
once=(protocols::judged explore::alike explore::chance explore::planted explore::mutants explore::accepted explore::causes
  explore::coverage explore::advice explore::stories json::written restore::damage printed:: distances:: bounds::a_ completing::
  shells:: mistakes:: correct::no_check_of_a_strict)
skip=()
$all || for test in "${once[@]}"; do skip+=(--skip "$test"); done
slow=(--test clusters --test faults --test storm)
quick=()
! $all || quick=(--lib --bins --test source)
for runner in tests/*/main.rs; do
  name=$(basename "$(dirname "$runner")")
  [[ " ${slow[*]} source " = *" $name "* ]] || quick+=(--test "$name")
done

if [ "${1:-}" = --build ]; then
  cargo test --locked --no-run "${slow[@]}" "${quick[@]}"
  exit
fi
if cargo nextest --version >/dev/null 2>&1; then
  cargo nextest run --locked "${slow[@]}" "${quick[@]}" -- ${skip[@]+"${skip[@]}"}
else
  cargo test --locked --no-run "${slow[@]}" "${quick[@]}"
  # Two times four tests at a time, where one runner alone takes eight.
  export RUST_TEST_THREADS=${RUST_TEST_THREADS:-4}
  output=$(mktemp "${TMPDIR:-/tmp}/idemctl-tests.XXXXXX")
  trap 'rm -f "$output"' EXIT
  cargo test --locked --no-fail-fast "${slow[@]}" -- ${skip[@]+"${skip[@]}"} >"$output" 2>&1 &
  beside=$! code=0
  cargo test --locked --no-fail-fast "${quick[@]}" -- ${skip[@]+"${skip[@]}"} || code=$?
  wait "$beside" || code=$?
  cat "$output"
  [ "$code" -eq 0 ] || exit "$code"
fi
! $all || cargo test --locked --doc
