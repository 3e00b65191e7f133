#!/usr/bin/env bash
# Runs the benchmarks on a server of their own: N records (100000, or what N says), ROUNDS rounds (5). Needs redis-cli.
# OLDER=PROGRAM compares the server's work for purge with that of an older idemctl. SCALE=yes runs the commands on N
# records instead (ten million, or fewer if the memory is too small), and on a tenth of them.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v redis-cli >/dev/null || { echo "redis-cli is needed to compare with (Debian: redis-tools)" >&2; exit 1; }

# Prints a Python that has the redis package: the machine's own, else one in .tools/; nothing when neither is to be had.
python_with_redis() {
  local python
  for python in python3 "$PWD/.tools/bench/bin/python"; do
    "$python" -c 'import redis' 2>/dev/null && { echo "$python"; return; }
  done
  python3 -m venv .tools/bench >&2 && .tools/bench/bin/pip install --quiet --disable-pip-version-check redis >&2 &&
    echo "$PWD/.tools/bench/bin/python"
}

engine=$(scripts/engines.sh --any)
BENCH_SERVER=$(cut -f 2 <<<"$engine")
echo "Building idemctl (the first time takes a few minutes) ..." >&2
cargo build --release --locked --quiet
BENCH_IDEMCTL=${CARGO_TARGET_DIR:-$PWD/target}/release/idemctl
# What `scripts/dist.sh binary` has built, if anything.
BENCH_STATIC=${CARGO_TARGET_DIR:-$PWD/target}/$(uname -m)-unknown-linux-musl/release/idemctl
BENCH_PYTHON=$(python_with_redis || true)
N=${N:-${SCALE:+10000000}}
export BENCH_SERVER BENCH_IDEMCTL BENCH_STATIC BENCH_PYTHON N=${N:-100000} ROUNDS=${ROUNDS:-5} OLDER=${OLDER:-}

if [ -n "${SCALE:-}" ]; then
  # A record and the key beside it take a kilobyte of the server, and as much of the page cache.
  most=$(awk '/^MemAvailable:/ { print int($2 / 2000) * 1000 }' /proc/meminfo 2>/dev/null || echo 1000000)
  [ "$N" -le "$most" ] || { echo "The memory of this machine is enough for $most records." >&2; N=$most; }
fi

# No settings of the user.
for name in $(compgen -e IDEMCTL_) REDIS_URL REDISCLI_AUTH; do unset "$name"; done
XDG_CONFIG_HOME=$(mktemp -d "${TMPDIR:-/tmp}/idemctl-bench.XXXXXX")
trap 'rm -rf "$XDG_CONFIG_HOME"' EXIT
# Nor their log.
export XDG_CONFIG_HOME XDG_STATE_HOME=$XDG_CONFIG_HOME

echo "$(cut -f 3 <<<"$engine"), $(nproc 2>/dev/null || echo '?') cores shared with the clients"
cargo run --release --quiet --manifest-path benches/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-$PWD/target}/bench"
