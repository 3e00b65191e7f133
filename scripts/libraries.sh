#!/usr/bin/env bash
# Installs the published libraries whose bytes tests/libraries/ keeps, drives each against a private Redis, and writes
# tests/libraries/NAME/fixtures.json anew. A library whose runtime this machine lacks is skipped with a line that says why;
# fixtures that were written from a library's source stay as they are.
#
#   scripts/libraries.sh record [NAME...]       install, drive, write the fixtures
#   scripts/libraries.sh meet [NAME...]         install, and let idemctl (IDEMCTL, else built) and the library meet on one key, both
#                                               ways: idemctl reads and completes what the library began, the library replays that
#   scripts/libraries.sh probe [NAME...]        install, start the library's service (serve.py, serve.mjs), and let idemctl probe it:
#                                               exactly the checks that probed.json names fail
#   scripts/libraries.sh run NAME MODE KEY      one question to an installed library (begin, answer), on IDEMCTL_LIBRARY_SOCKET
#
# The libraries go into .libraries/NAME, with the versions that requirements.txt or package.json pins. No package runs a script
# while npm installs the package. IDEMCTL_LIBRARY_SECONDS bounds each step (300).
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
home=$root/.libraries
bound=${IDEMCTL_LIBRARY_SECONDS:-300}

say() { printf 'libraries: %s\n' "$*" >&2; }

# bounded COMMAND...
bounded() { timeout --kill-after=10 "$bound" "$@"; }

# kind NAME: what drives a library: python, node, or source where fixtures were written from the source alone.
kind() {
  if [ -e "tests/libraries/$1/requirements.txt" ]; then echo python
  elif [ -e "tests/libraries/$1/package.json" ]; then echo node
  else echo source
  fi
}

# lacking KIND: the program that this machine lacks for it; nothing where all are there.
lacking() {
  local program
  for program in $([ "$1" = python ] && echo python3 || echo node npm); do
    command -v "$program" >/dev/null || { echo "$program"; return; }
  done
}

# pinned NAME FILE: the library is installed as FILE pins. The pin lies beside what was installed.
pinned() { cmp -s "tests/libraries/$1/$2" "$home/$1/pinned"; }

install_python() {
  pinned "$1" requirements.txt && return
  say "$1: pip install"
  rm -rf "${home:?}/$1"
  bounded python3 -m venv "$home/$1" >&2 || return 1
  bounded "$home/$1/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "tests/libraries/$1/requirements.txt" >&2 || return 1
  cp "tests/libraries/$1/requirements.txt" "$home/$1/pinned"
}

install_node() {
  pinned "$1" package.json && return
  say "$1: npm install"
  rm -rf "${home:?}/$1"
  mkdir -p "$home/$1"
  cp "tests/libraries/$1/package.json" "$home/$1/"
  (cd "$home/$1" && bounded npm install --ignore-scripts --no-audit --no-fund --loglevel=error >&2) || return 1
  cp "tests/libraries/$1/package.json" "$home/$1/pinned"
}

# run NAME MODE WHAT: the driver, beside what it imports.
run() {
  case $(kind "$1") in
    python) PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/libraries bounded "$home/$1/bin/python" "tests/libraries/$1/drive.py" "$2" "$3" ;;
    node)
      # Node.js looks for packages beside the file that imports them.
      cp tests/libraries/recorder.mjs "tests/libraries/$1/drive.mjs" "$home/$1/"
      bounded node "$home/$1/drive.mjs" "$2" "$3"
      ;;
  esac
}

# serve: a private server on a socket in a folder of its own; both are gone when this script ends.
serve() {
  local program work
  program=$(scripts/engines.sh --any | cut -f 2)
  work=$(mktemp -d "${TMPDIR:-/tmp}/idemctl-libraries.XXXXXX")
  "$program" --port 0 --unixsocket "$work/socket" --save '' --appendonly no --dir "$work" >"$work/log" &
  # shellcheck disable=SC2064 # the values of now
  trap "kill $! 2>/dev/null; rm -rf '$work'" EXIT
  export IDEMCTL_LIBRARY_SOCKET=$work/socket
  for _ in $(seq 100); do [ -S "$work/socket" ] && return; sleep 0.1; done
  say "the server did not start: $(tail -n 1 "$work/log")"
  return 1
}

# installed NAME: installs the library; fails, with a line that says why, where it cannot be had.
installed() {
  local how lacks
  how=$(kind "$1")
  [ "$how" = source ] && { say "$1: skipped, its fixtures were written from its source (no runtime is asked for)"; return 1; }
  lacks=$(lacking "$how")
  [ -n "$lacks" ] && { say "$1: skipped, there is no $lacks on this machine"; return 1; }
  "install_$how" "$1" || { say "$1: skipped, the registry did not give what is pinned"; return 1; }
}

# kept NAME: the bytes that the library writes are kept here.
kept() { [ -e "tests/libraries/$1/fixtures.json" ]; }

# record NAME
record() {
  kept "$1" || return 0
  installed "$1" || return 0
  run "$1" record "$root/tests/libraries/$1/fixtures.json" || { say "$1: the driver failed"; return 1; }
}

# answers NAME WORD: the library answers so to the request that `begin` began.
answers() {
  local told
  told=$(run "$1" answer met) || { say "$1: the driver failed"; return 1; }
  case $told in
    *'"answer": "'"$2"'"'* | *'"answer":"'"$2"'"'*) ;;
    *) say "$1: the library answers $told, and not $2"; return 1 ;;
  esac
}

# meet NAME: on one key of the library's own, which the private server keeps from the library before.
meet() {
  local schema redis_key response
  kept "$1" || return 0
  installed "$1" || return 0
  schema=$(sed -n 's/^ "schema": "\(.*\)",$/\1/p' "tests/libraries/$1/fixtures.json")
  grep -Eq '^(\[\[complete|protocol = )' "lua/libraries/$schema/schema.toml" || { say "$1: skipped, $schema describes no complete step"; return; }
  run "$1" begin met >/dev/null && answers "$1" conflict || return 1
  redis_key=$(asked list --schema "$schema" --state in-progress -o jsonl | sed -n 's/.*"redis_keys":\["\([^"]*\)".*/\1/p')
  [ -n "$redis_key" ] || { say "$1: idemctl lists no lock of $schema"; return 1; }
  response=(--body '{"id":1}')
  grep -q '^result_value.*{status}' "lua/libraries/$schema/schema.toml" && response+=(--status 201 --header 'content-type: application/json')
  asked complete "$redis_key" --schema "$schema" "${response[@]}" --yes --debug >"$IDEMCTL_LIBRARY_SOCKET.told" 2>&1 || {
    cat "$IDEMCTL_LIBRARY_SOCKET.told" >&2
    say "$1: idemctl does not complete $redis_key"; return 1; }
  answers "$1" replay || return 1
  asked purge "$redis_key" --schema "$schema" --yes >/dev/null 2>&1 || { say "$1: idemctl does not purge $redis_key"; return 1; }
  say "$1: idemctl completed what the library began, and the library replays it"
}

# serve_payments NAME PORT: the library's service. Its process replaces the shell.
serve_payments() {
  case $(kind "$1") in
    python) PYTHONDONTWRITEBYTECODE=1 exec "$home/$1/bin/python" "tests/libraries/$1/serve.py" "$2" ;;
    node)
      cp "tests/libraries/$1/serve.mjs" "$home/$1/"
      exec node "$home/$1/serve.mjs" "$2"
      ;;
  esac
}

# probe NAME: as docs/probe.md shows it.
probe() {
  local port url service code=0
  [ -e "tests/libraries/$1/probed.json" ] || return 0
  installed "$1" || return 0
  port=$((20000 + RANDOM % 10000))
  url=http://127.0.0.1:$port
  serve_payments "$1" "$port" >"$IDEMCTL_LIBRARY_SOCKET.served" 2>&1 &
  service=$!
  for _ in $(seq 100); do curl -s -o "$IDEMCTL_LIBRARY_SOCKET.told" "$url/effects" && break; sleep 0.1; done
  alone probe "$url/payments" -H 'Content-Type: application/json' -d '{"order":"order-1","amount":500}' --effects "$url/effects" \
    -H 'Authorization: Bearer one' --as 'Authorization: Bearer two' --expect "tests/libraries/$1/probed.json" \
    >"$IDEMCTL_LIBRARY_SOCKET.told" 2>&1 || code=$?
  kill "$service"
  wait "$service" 2>/dev/null || true
  # 3: some check proves nothing.
  if [ "$code" -ne 0 ] && [ "$code" -ne 3 ]; then
    cat "$IDEMCTL_LIBRARY_SOCKET.served" "$IDEMCTL_LIBRARY_SOCKET.told" >&2
    say "$1: a probe finds something else than probed.json names (exit status $code)"
    return 1
  fi
  say "$1: a probe finds what probed.json names: $(grep -o '"id": "[a-z-]*"' "tests/libraries/$1/probed.json" | cut -d '"' -f 4 | paste -sd ' ')"
}

# need_idemctl: leaves in IDEMCTL the program that is asked.
need_idemctl() {
  [ -n "${IDEMCTL:-}" ] && return
  cargo build --locked --quiet
  IDEMCTL=${CARGO_TARGET_DIR:-$root/target}/debug/idemctl
}

# alone WORDS...: idemctl with no settings of the user.
alone() { env -i PATH="$PATH" HOME="$(dirname "$IDEMCTL_LIBRARY_SOCKET")" "$IDEMCTL" "$@"; }

# asked WORDS...: the same on the private server.
asked() { alone -u "unix://$IDEMCTL_LIBRARY_SOCKET" "$@"; }

case ${1:-} in
  record | meet | probe)
    what=$1
    shift
    [ $# -gt 0 ] || { cd tests/libraries; set -- */; set -- "${@%/}"; cd ../..; }
    for name in "$@"; do [ -d "tests/libraries/$name" ] || { say "no library is called $name (tests/libraries/ has: $(ls -m tests/libraries))"; exit 2; }; done
    serve
    failed=0
    [ "$what" = record ] || need_idemctl
    for name in "$@"; do "$what" "$name" || failed=1; done
    exit "$failed"
    ;;
  run) shift; run "$@" ;;
  *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
