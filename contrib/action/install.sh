#!/usr/bin/env bash
# Installs a release of idemctl, and a Redis server if there is none. IDEMCTL_VERSION is the release, IDEMCTL_REPOSITORY the
# repository that has it, and GH_TOKEN a token that may read it.
set -euo pipefail

name=idemctl-$IDEMCTL_VERSION-$(uname -m)-unknown-linux-musl
folder=${RUNNER_TEMP:-/tmp}/idemctl-$IDEMCTL_VERSION
mkdir -p "$folder"
cd "$folder"
gh release download "v$IDEMCTL_VERSION" --repo "$IDEMCTL_REPOSITORY" --clobber --pattern "$name.tar.gz" --pattern SHA256SUMS
sha256sum --check --ignore-missing --strict SHA256SUMS
tar -xzf "$name.tar.gz" --strip-components=1
./idemctl --version
printf '%s\n' "$PWD" >>"$GITHUB_PATH"

if ! command -v redis-server >/dev/null && ! command -v valkey-server >/dev/null; then
  sudo apt-get update
  sudo apt-get install --yes redis-server
fi
