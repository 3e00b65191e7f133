# shellcheck shell=bash
# Sourced by the scripts that compile for targets which this machine is not.

# in_turn COMMAND...: .ci/run runs scripts at the same time that install the same things. macOS has no flock, and no .ci/run.
in_turn() {
  command -v flock >/dev/null || { "$@"; return; }
  mkdir -p .tools
  (flock 9 && "$@" 9>&-) 9>.tools/lock
}

# get_zig: installs what scripts/zig.txt pins into .tools/zig, unless it is there, and puts it into PATH. Fails if it cannot be had.
get_zig() {
  in_turn install_zig || return 1
  export PATH=$PWD/.tools/zig/bin:$PATH CARGO_ZIGBUILD_ZIG_PATH=$PWD/.tools/zig/ziglang/zig
  "$CARGO_ZIGBUILD_ZIG_PATH" version >/dev/null
}

install_zig() {
  cmp -s scripts/zig.txt .tools/zig/pin.txt && return
  rm -rf .tools/zig
  python3 -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: --target .tools/zig \
    --requirement scripts/zig.txt >&2 &&
    cp scripts/zig.txt .tools/zig/pin.txt
}

# get_target TARGET: the standard library of a target.
get_target() { in_turn install_target "$1"; }

install_target() { rustup target list --installed 2>/dev/null | grep -qx "$1" || rustup target add "$1" >&2; }
