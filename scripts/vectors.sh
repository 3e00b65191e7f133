#!/usr/bin/env bash
# Installs the Redis clients with which contrib/vectors/ runs the vectors in Python and TypeScript, into .libraries/vectors/. A
# client that cannot be installed is skipped with a line that says why, and so is its test in tests/lua.
set -euo pipefail
cd "$(dirname "$0")/.."

home=$PWD/.libraries/vectors
say() { printf 'vectors: %s\n' "$*" >&2; }

# installed NAME FILE: true if the client is installed as FILE pins it, by the copy of FILE in its folder.
installed() { cmp -s "contrib/vectors/$2" "$home/$1/pinned"; }

install_python() {
  command -v python3 >/dev/null || { say "Python: skipped, there is no python3"; return; }
  installed python requirements.txt && return
  rm -rf "$home/python"
  if python3 -m venv "$home/python" >&2 &&
    "$home/python/bin/python" -m pip install --quiet --disable-pip-version-check --requirement contrib/vectors/requirements.txt >&2; then
    cp contrib/vectors/requirements.txt "$home/python/pinned"
  else
    rm -rf "$home/python"
    say "Python: skipped, pip could not install redis"
  fi
}

install_node() {
  local program
  for program in node npm; do
    command -v "$program" >/dev/null || { say "TypeScript: skipped, there is no $program"; return; }
  done
  installed node package.json && return
  rm -rf "$home/node"
  mkdir -p "$home/node"
  cp contrib/vectors/package.json "$home/node/"
  if (cd "$home/node" && npm install --ignore-scripts --no-audit --no-fund --loglevel=error >&2); then
    cp contrib/vectors/package.json "$home/node/pinned"
  else
    rm -rf "$home/node"
    say "TypeScript: skipped, npm could not install ioredis"
  fi
}

install_python
install_node
