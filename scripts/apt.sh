# shellcheck shell=bash
# Sourced by the scripts that install packages of Debian; such a script has a `say`, which tells people what happens.

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"
  elif ! command -v sudo >/dev/null; then say "no sudo to run: $*"; return 1
  elif [ -t 0 ]; then sudo "$@"
  else sudo -n "$@" # nobody there to type a password
  fi
}

apt_install() {
  command -v apt-get >/dev/null || return 1
  say "apt-get install $*"
  local get="env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300"
  # shellcheck disable=SC2086 # a command and its words
  as_root $get install -y --no-install-recommends "$@" >&2 && return
  # Package lists may be missing (a fresh container) or stale.
  # shellcheck disable=SC2086
  as_root $get update >&2 && as_root $get install -y --no-install-recommends "$@" >&2
}
