#!/usr/bin/env bash
# Runs tests of tests/ on the server program IDEMCTL_TEST_SERVER: with cargo-nextest if it is installed, else with cargo test.
#
#   scripts/runners.sh            every test but the long ones
#   scripts/runners.sh --engine   the tests whose outcome depends on the engine
#   scripts/runners.sh --long     the long tests: those with #[ignore = "long"], and the tests with random inputs on new ones
#   scripts/runners.sh --build    builds all tests
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/steps.sh
. scripts/steps.sh

# The rows of tests/cli that depend on the engine: expiry, hashes, rights, logins, DUMP, the sandbox, TLS.
rows=(acl context_test debug doctor::guards endless_locks format_two::hashes format_two::many_hashes identity kept_hashes own_end
  own_expiry restore::apart restore::command restore::moment restore::place sandbox::server simulate::server tls undo)
# Clients of other languages, the judgement of `explore` and the memory of idemctl do not depend on it.
skip=(vector_runners protocols::judged explore::alike explore::chance bounds::)
# The tests of libraries need programs that only `make libraries` installs.
libraries=(promises:: replays::)

if [ "${1:-}" = --build ]; then
  exec cargo test --locked --no-run
fi

# The tests put their servers and files here. The path is short because the length of a socket's path is limited.
TMPDIR=$(mktemp -d /tmp/idemctl-tests.XXXXXX)
export TMPDIR
output=$(mktemp /tmp/idemctl-output.XXXXXX)
trap 'rm -rf "$TMPDIR" "$output"' EXIT

# run SELECTION... [-- FILTER...]: shows the output, and keeps it for the list of the slowest tests.
has_nextest=false
if cargo nextest --version >/dev/null 2>&1; then has_nextest=true; fi
run() {
  if $has_nextest; then
    cargo nextest run --locked "$@" 2>&1 | tee -a "$output"
  else
    cargo test --locked --no-fail-fast "$@" 2>&1
  fi
}

code=0
case ${1:-} in
  "")
    if $has_nextest; then
      run || code=$?
    else
      # Two runners at a time, because these wait most of the time.
      export RUST_TEST_THREADS=${RUST_TEST_THREADS:-4}
      quick=(--lib --bins)
      for runner in tests/*/main.rs; do
        name=$(basename "$(dirname "$runner")")
        case $name in clusters | faults | storm) ;; *) quick+=(--test "$name") ;; esac
      done
      run --test clusters --test faults --test storm >"$output" &
      beside=$!
      run "${quick[@]}" || code=$?
      wait "$beside" || code=$?
      cat "$output"
    fi
    cargo test --locked --doc || code=$?
    ;;
  --engine)
    filters=()
    for test in "${skip[@]}"; do filters+=(--skip "$test"); done
    if $has_nextest; then
      cli=$(IFS='|' && echo "${rows[*]}")
      run -E "binary(/^(lua|library|faults|clusters)\$/) | (binary(cli) & test(/^($cli)::/))" -- "${filters[@]}" || code=$?
    else
      run --test lua --test library --test faults --test clusters -- "${filters[@]}" || code=$?
      run --test cli -- "${rows[@]/%/::}" || code=$?
    fi
    ;;
  --long)
    filters=()
    for test in "${libraries[@]}"; do filters+=(--skip "$test"); done
    run -- --ignored "${filters[@]}" || code=$?
    PROPTEST_RNG_SEED=${IDEMCTL_SEED:-$RANDOM}
    export PROPTEST_RNG_SEED
    note note "random inputs with the seed $PROPTEST_RNG_SEED (SEED=$PROPTEST_RNG_SEED repeats them)"
    run --lib --test lua --test library || code=$?
    ;;
  *)
    echo "unknown argument: $1" >&2
    exit 2
    ;;
esac

# Only cargo-nextest reports times.
if $has_nextest; then
  slowest=$(sed -n 's/^ *PASS \[ *\([0-9.]*s\)\] ([^)]*) \(.*\)/\1 \2/p' "$output" | sort -rn | sed -n 1,10p)
  while read -r line; do note slowest "$line"; done <<<"$slowest"
fi
# What a test leaves behind is a fault of the test, or of idemctl.
left=$(find "$TMPDIR" -mindepth 1 -maxdepth 1)
for folder in /proc/[0-9]*/cwd; do
  case $(readlink "$folder" || true) in
    "$TMPDIR"/*) left+=" $(tr '\0' ' ' <"${folder%cwd}cmdline" || true)" ;;
  esac
done 2>/dev/null
if [ -n "$left" ]; then
  note FAILED "files or processes that the tests left behind: $left"
  code=1
fi
exit "$code"
