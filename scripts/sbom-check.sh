#!/usr/bin/env bash
# Passes where an SBOM names every crate that a binary is built of, and none that Cargo.lock does not have in that version. An SBOM may
# name more: crates that only features of the tests bring in.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 - "$1" <(cargo tree --locked --target "$2" --edges normal,build --prefix none --format '{p}') <<'END'
import json, re, sys

with open(sys.argv[1]) as file:
    named = {(part["name"], part["version"]) for part in json.load(file)["components"]}
with open(sys.argv[2]) as file:
    lines = (re.match(r"(\S+) v(\S+)", line) for line in file)
    built = {line.groups() for line in lines if line and line[1] != "idemctl"}
with open("Cargo.lock") as file:
    locked = set(re.findall(r'name = "(\S+)"\nversion = "(\S+)"', file.read()))
for what, crates in (("not in the SBOM", built - named), ("not in Cargo.lock", named - locked)):
    for name, version in sorted(crates):
        print(f"{name} {version} is {what}")
sys.exit(1 if built - named or named - locked else 0)
END
