# shellcheck shell=bash
# Sourced by the scripts that run named steps: prints each command, times it, stops at the first that fails,
# and ends with one summary, which scripts started as a step add their own lines to.

if [ -z "${IDEMCTL_STEPS:-}" ]; then
  IDEMCTL_STEPS=$(mktemp "${TMPDIR:-/tmp}/idemctl-steps.XXXXXX")
  export IDEMCTL_STEPS
  trap 'printf "\nSummary\n"; cat "$IDEMCTL_STEPS"; rm -f "$IDEMCTL_STEPS"' EXIT
fi

# note WORD TEXT: one line of the summary.
note() { printf '  %-8s%s\n' "$1" "$2" >>"$IDEMCTL_STEPS"; }

# step NAME COMMAND...: COMMAND is a program, not a function of the script (bash drops `set -e` inside one called here).
step() {
  local name=$1 began=$SECONDS code=0
  shift
  printf '\n==> %s\n  $ %s\n' "$name" "$*"
  "$@" || code=$?
  if [ "$code" -ne 0 ]; then
    note FAILED "$name (exit status $code, $((SECONDS - began)) s)"
    exit "$code"
  fi
  note ok "$name ($((SECONDS - began)) s)"
}
