#!/usr/bin/env bash
# Runs schema check, explore, simulate and race with one schema, each on a temporary local Redis, and writes a report of each. All of
# them run, even if one fails. Exit status 1 if any failed. Works without GitHub as well:
#
#   SCHEMA=payments SCHEMA_DIR=lua run.sh
#
# EXPLORE_ARGS, SIMULATE_ARGS and RACE_ARGS are more arguments, separated by spaces. REPORTS is the folder for the reports.
set -euo pipefail

schema=${SCHEMA:?the name of the schema}
schema_dir=${SCHEMA_DIR:-lua}
reports=${REPORTS:-idemctl-reports}
summary=${GITHUB_STEP_SUMMARY:-/dev/null}
read -ra explore_args <<<"${EXPLORE_ARGS:-}"
read -ra simulate_args <<<"${SIMULATE_ARGS:-}"
read -ra race_args <<<"${RACE_ARGS:-}"
mkdir -p "$reports"
failed=()

# check NAME ARGUMENTS...: runs idemctl, and adds its output to the summary.
check() {
  local name=$1 code=0
  shift
  printf '$ idemctl %s\n' "$*"
  idemctl "$@" >"$reports/$name.txt" 2>&1 || code=$?
  cat "$reports/$name.txt"
  [ "$code" -eq 0 ] || failed+=("$name (exit status $code)")
  # The indentation shows the output unchanged, whatever is in it.
  { printf '### %s: exit status %s\n\n' "$name" "$code"; sed 's/^/    /' "$reports/$name.txt"; printf '\n'; } >>"$summary"
}

own=(--schema-dir "$schema_dir")
check schema-check schema check "$schema_dir/$schema" "${own[@]}"
check explore explore "$schema" "${own[@]}" --sandbox --junit "$reports/explore.xml" ${explore_args[@]+"${explore_args[@]}"}
check simulate simulate --all --schema "$schema" "${own[@]}" --sandbox ${simulate_args[@]+"${simulate_args[@]}"}
check race race --schema "$schema" "${own[@]}" --sandbox --strategy schema ${race_args[@]+"${race_args[@]}"}

if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
