# shellcheck shell=bash
# Sourced by the scripts that compile for targets which this machine is not.

# get_zig: installs what scripts/zig.txt pins into .tools/zig, unless it is there, and puts it into PATH. Fails if it cannot be had.
get_zig() {
  local home=$PWD/.tools/zig
  if ! cmp -s scripts/zig.txt "$home/pin.txt"; then
    rm -rf "$home"
    python3 -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: --target "$home" \
      --requirement scripts/zig.txt >&2 || return 1
    cp scripts/zig.txt "$home/pin.txt"
  fi
  export PATH=$home/bin:$PATH CARGO_ZIGBUILD_ZIG_PATH=$home/ziglang/zig
  "$CARGO_ZIGBUILD_ZIG_PATH" version >/dev/null
}

# get_target TARGET: the standard library of a target.
get_target() {
  rustup target list --installed 2>/dev/null | grep -qx "$1" || rustup target add "$1" >&2
}
