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

say "Are locks stuck? Retries of their requests are rejected until an operator removes them."
show 0 idemctl list --finding no-expiry

key=$(idemctl list --schema event-consumer --state in-progress --finding no-expiry -o jsonl --limit 1 | grep -o '"key": *"[^"]*"' | head -n 1 | sed 's/.*"\([^"]*\)"$/\1/')
[ -n "$key" ] || { echo "demo: the seeded server holds no lock without expiry" >&2; exit 1; }

say "Why is this one stuck, and what does the next retry get?"
show 0 idemctl inspect "$key"

say "Repair it: backed up, and removed only if it is still what was shown."
show 0 idemctl force-unlock "$key" --yes --reason "demo"

say "The proof that the Lua lets only one of many requests through: fifty at once, and the same without Lua."
show 0 idemctl --sandbox race --concurrency 50 --schema express

say "But what if a call is sent again, and a handler fails? explore tries every order of the steps."
show 1 idemctl --sandbox explore express
