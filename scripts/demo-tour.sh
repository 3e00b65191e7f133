#!/bin/sh
# The commands of the demo. `idemctl sandbox` runs this, with REDIS_URL naming its server.
set -u

say() { printf '\n# %s\n' "$*"; }

# show STATUSES COMMAND...: prints the command as one would type it, then runs it; its exit status has to be one of STATUSES.
show() {
  statuses=$1
  shift
  printf '$'
  for word in "$@"; do
    case $word in
      *[!A-Za-z0-9_./:@%+=,-]*) printf " '%s'" "$word" ;;
      *) printf ' %s' "$word" ;;
    esac
  done
  printf '\n'
  "$@"
  status=$?
  case " $statuses " in
    *" $status "*) ;;
    *) echo "demo: exit status $status was not expected here ($statuses)" >&2; exit 1 ;;
  esac
}

say "Which idempotency keys are there, and which of them are in trouble?"
show 0 idemctl list --limit 12

say "Locks that never expire: retries of these requests are rejected, indefinitely or until one gives the lock a TTL."
show 0 idemctl list --state in-progress --finding no-expiry

key=$(idemctl list --schema event-consumer --state in-progress --finding no-expiry -o jsonl --limit 1 | grep -o '"key": *"[^"]*"' | head -n 1 | sed 's/.*"\([^"]*\)"$/\1/')
[ -n "$key" ] || { echo "demo: the seeded server holds no lock without expiry" >&2; exit 1; }

say "What is it, and what does the next retry get?"
show 0 idemctl inspect "$key"

say "Release it: shown, backed up, deleted only if it is still what was shown."
show 0 idemctl force-unlock "$key" --yes --reason "demo"

say "Gone: the next retry starts afresh. The answer to 'is it there?' is no, so the exit status is 1."
show 1 idemctl inspect "$key"

say "Does the Lua let one request through, and only one? Fifty at once:"
show 0 idemctl --sandbox race --concurrency 50

say "And when things go wrong? A failure that comes too late, with a service's own steps and with the reference scripts:"
show 1 idemctl --sandbox simulate zombie-releases --schema express,reference
