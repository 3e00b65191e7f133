#!/usr/bin/env bash
# The steps of scripts/dist-check.sh: no-paths BINARY, static BINARY, incident EMULATOR BINARY, empty-root BINARY, debian-root PACKAGE.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD/target/dist-root

# want TEXT COMMAND...: passes where the command prints the text.
want() {
  local text=$1 told
  shift
  told=$("$@" 2>&1 || true)
  grep -qF -- "$text" <<<"$told" || { printf 'no "%s" in what %s prints:\n%s\n' "$text" "$*" "$told" >&2; exit 1; }
}

case $1 in
  no-paths)
    for path in "$PWD" "${CARGO_HOME:-$HOME/.cargo}" "$HOME/.rustup"; do
      if grep -qaF "$path" "$2"; then
        echo "the binary names $path" >&2
        exit 1
      fi
    done
    ;;
  static)
    # Not with `!`: bash goes on after a negated command, whatever its status.
    if { readelf -d "$2"; readelf -l "$2"; } | grep -E "NEEDED|INTERP"; then
      echo "the binary wants what stands above" >&2
      exit 1
    fi
    want "DYN (Position-Independent" readelf -h "$2"
    ;;
  incident)
    # The emulator is empty for a binary of this machine. The server is one of this machine in both cases.
    home=$(mktemp -d)
    trap 'rm -rf "$home"' EXIT
    server=$(scripts/engines.sh --any | cut -f 2)
    run=(${2:+"$2"} "$PWD/$3")
    PATH=$(dirname "$server"):$PATH
    export HOME=$home
    # shellcheck disable=SC2016 # The shell inside expands this.
    # The seeded records are always the same, and one lock of them is stuck under this key. inspect and check answer with their status.
    # shellcheck disable=SC2016 # The shell inside expands this.
    "${run[@]}" sandbox --seed 20 -- bash -euc '
      key=invoices.sent-3-48007
      "$@" inspect "$key" || [ $? -eq 1 ]
      "$@" check | grep "^IDEMCTL CRITICAL - "
      "$@" force-unlock "$key" --yes --reason rehearsal
      "$@" check | grep -v "$key"
      "$@" undo --yes
      "$@" inspect "$key" | grep no-expiry
    ' incident "${run[@]}"
    ;;
  empty-root)
    rm -rf "$root" && mkdir -p "$root/etc" "$root/tmp"
    cp "$2" "$root/idemctl"
    want "idemctl $(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)" chroot "$root" /idemctl --version
    want "go-middleware" chroot "$root" /idemctl schema list
    # Names are resolved by the files and the name server alone, whatever a foreign nsswitch.conf says.
    echo "127.0.0.1 redis.example" >"$root/etc/hosts"
    echo "hosts: mymachines resolve [!UNAVAIL=return] files dns" >"$root/etc/nsswitch.conf"
    want "redis.example:1" chroot "$root" /idemctl -u redis://redis.example:1 list
    want "refused" chroot "$root" /idemctl -u redis://redis.example:1 list
    ;;
  debian-root)
    rm -rf "$root"
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    debootstrap --variant=minbase --include=bash-completion,man-db "$codename" "$root" >/dev/null
    cp "$2" "$root/tmp/idemctl.deb"
    chroot "$root" dpkg --install /tmp/idemctl.deb
    want "go-middleware" chroot "$root" idemctl schema list
    for page in 1:idemctl-sweep 5:idemctl-config 7:idemctl-findings; do
      want "idemctl" chroot "$root" man -P cat "${page%%:*}" "${page#*:}"
    done
    # shellcheck disable=SC2016 # The shell in the root expands this.
    want "--orphaned" chroot "$root" bash -c '. /usr/share/bash-completion/completions/idemctl
      COMP_WORDS=(idemctl sweep --orp) COMP_CWORD=2 COMP_TYPE=9; _clap_complete_idemctl idemctl --orp sweep; echo "${COMPREPLY[@]}"'
    chroot "$root" dpkg --purge idemctl
    [ ! -e "$root/usr/bin/idemctl" ]
    ;;
  *) echo "there is no step $1" >&2; exit 2 ;;
esac
[ ! -d "$root" ] || rm -rf "$root"
