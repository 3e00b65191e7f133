#!/usr/bin/env bash
# What the release workflow publishes besides the files of make dist:
#
#   scripts/release.sh notes VERSION           the section of CHANGELOG.md
#   scripts/release.sh formula VERSION SUMS    the Homebrew formula, with the checksums of the file SUMS
set -euo pipefail
cd "$(dirname "$0")/.."
version=$2
grep -qx "version = \"$version\"" Cargo.toml || { echo "Cargo.toml has another version than $version" >&2; exit 1; }

case $1 in
  notes)
    notes=$(awk -v heading="## [$version]" 'index($0, "## [") == 1 { inside = index($0, heading) == 1; next } inside' CHANGELOG.md)
    [ -n "$notes" ] || { echo "CHANGELOG.md has no section for $version" >&2; exit 1; }
    printf '%s\n' "$notes"
    ;;
  formula)
    # A checksum follows the address of its file.
    awk -v version="$version" '
      NR == FNR { sums[$2] = $1; next }
      $1 == "version" { sub(/".*"/, "\"" version "\"") }
      $1 == "url" {
        gsub(/[0-9]+\.[0-9]+\.[0-9]+/, version)
        file = $2
        gsub(/.*\/|"/, "", file)
        if (!(file in sums)) { print file " has no checksum" >"/dev/stderr"; exit 1 }
      }
      $1 == "sha256" { sub(/".*"/, "\"" sums[file] "\"") }
      { print }
    ' "$3" contrib/homebrew/idemctl.rb
    ;;
  *) echo "notes or formula, not $1" >&2; exit 2 ;;
esac
