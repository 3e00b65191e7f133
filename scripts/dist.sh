#!/usr/bin/env bash
# Builds what a release consists of into target/dist/: for each Linux target an archive with the static binary, a .deb and an .rpm, then
# the source crate, the SBOM and SHA256SUMS. The same commit gives the same bytes, whatever the folder. macOS builds its own two archives
# alone. `scripts/dist.sh binary deb` builds these alone, IDEMCTL_TARGETS names other targets, and IDEMCTL_PROFILE=quick builds by that
# profile of Cargo.toml.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/steps.sh
. scripts/steps.sh
say() { printf 'dist: %s\n' "$*" >&2; }
# shellcheck source=scripts/apt.sh
. scripts/apt.sh
# shellcheck source=scripts/zig.sh
. scripts/zig.sh

case $(uname -s) in
  Darwin) targets=(aarch64-apple-darwin x86_64-apple-darwin) parts=(binary) tar=gtar ;;
  *) targets=(x86_64-unknown-linux-musl aarch64-unknown-linux-musl) parts=(binary deb rpm crate sbom sums) tar=tar ;;
esac
[ -z "${IDEMCTL_TARGETS:-}" ] || read -ra targets <<<"$IDEMCTL_TARGETS"
[ "$#" -eq 0 ] || parts=("$@")
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
out=$PWD/target/dist
profile=${IDEMCTL_PROFILE:-release}

IDEMCTL_COMMIT=$(git rev-parse --short=12 HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export IDEMCTL_COMMIT SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
[ -z "$(git status --porcelain --untracked-files=no)" ] || note note "the checkout has changes that are in no commit"

# tool NAME RELEASE: builds a cargo subcommand into .tools/, unoptimized, unless it is there.
tool() {
  [ -x ".tools/bin/$1" ] || step "get $1" env CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=0 \
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 cargo install --quiet --locked --version "$2" "$1" --root .tools
}

# need PROGRAM PACKAGE: from Debian's packages, where this user may install them.
need() {
  command -v "$1" >/dev/null || apt_install "$2" || { note FAILED "get $1"; exit 1; }
}

# What a static binary takes: the target, and zig, which links it and compiles the C code of ring. macOS has its own compiler.
tools() {
  [[ $1 = *-apple-darwin ]] || get_zig || return 1
  get_target "$1"
}

# Puts cargo-auditable where it stands whatever the folder and the user, for cargo takes the path of a wrapper into the names of
# what it compiles: two folders would give two binaries.
auditable=/tmp/idemctl-auditable
auditable_apart() {
  mkdir -m 700 "$auditable" 2>/dev/null || [ -O "$auditable" ] || { note FAILED "$auditable is another user's"; exit 1; }
  cp .tools/bin/cargo-auditable "$auditable/cargo-auditable.$$" && mv "$auditable/cargo-auditable.$$" "$auditable/cargo-auditable"
}

binary() {
  # Without -pie, zig links a binary that the system always loads at the same address.
  local cargo_home=${CARGO_HOME:-$HOME/.cargo} build=zigbuild pie="-Clink-arg=-pie"
  tools "$target" || { note FAILED "get what builds $target"; exit 1; }
  [[ $target != *-apple-darwin ]] || { build=build pie=; }
  tool cargo-auditable 0.7.7
  auditable_apart
  # No path of the builder goes into the binary. C code is in ring.
  local map="-ffile-prefix-map=$cargo_home=/cargo -ffile-prefix-map=$PWD=/idemctl"
  step "binary for $target" env PATH="$auditable:$PATH" CFLAGS="$map" \
    RUSTFLAGS="--remap-path-prefix=$cargo_home=/cargo --remap-path-prefix=$PWD=/idemctl $pie" \
    cargo auditable "$build" --profile "$profile" --locked --target "$target"
  tar_of "$out/$name.tar.gz"
}

# tar_of FILE: binary, manual, completions and licences in one folder.
tar_of() {
  local folder=$out/$name
  rm -rf "$folder" && mkdir -p "$folder"
  cp "$binary" README.md CHANGELOG.md LICENSE-* "$folder/"
  cp -r completions man "$folder/"
  step "archive for $target" "$tar" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --mode=go=rX,u+rw \
    -C "$out" --use-compress-program="gzip -9n" -cf "$1" "$name"
  rm -rf "$folder"
}

# tree ROOT ZSH LICENCES: the files of a package where they go. ZSH is the folder that zsh looks into on such a system; LICENCES is
# `none` where the package tells them in another way.
tree() {
  local root=$1 share=$1/usr/share page
  rm -rf "$root"
  install -Dm755 "$binary" "$root/usr/bin/idemctl"
  for page in man/*.[157]; do
    install -Dm644 "$page" "$share/man/man${page##*.}/${page##*/}"
  done
  gzip -9n "$share"/man/man?/*
  install -Dm644 completions/idemctl.bash "$share/bash-completion/completions/idemctl"
  install -Dm644 completions/_idemctl "$share/zsh/$2/_idemctl"
  install -Dm644 completions/idemctl.fish "$share/fish/vendor_completions.d/idemctl.fish"
  install -Dm644 -t "$share/doc/idemctl/examples/systemd" contrib/systemd/*
  install -Dm644 -t "$share/doc/idemctl/examples/prometheus" contrib/prometheus/*
  install -Dm644 -t "$share/doc/idemctl/examples/grafana" contrib/grafana/*
  install -Dm644 -t "$share/doc/idemctl/docs" docs/*.md
  install -Dm644 README.md "$share/doc/idemctl/README.md"
  [ "$3" = none ] || install -Dm644 -t "$share/licenses/idemctl" LICENSE-*
}

deb() {
  local root=target/dist-deb share arch
  share=$root/usr/share/doc/idemctl
  case $target in x86_64-*) arch=amd64 ;; *) arch=arm64 ;; esac
  tree "$root" vendor-completions none
  gzip -9n <CHANGELOG.md >"$share/NEWS.gz"
  scripts/package-notes.sh changelog "$version" | gzip -9n >"$share/changelog.gz"
  scripts/package-notes.sh copyright >"$share/copyright"
  # A static binary that may be loaded anywhere looks like a library that needs none.
  install -d "$root/usr/share/lintian/overrides"
  echo 'idemctl: shared-library-lacks-prerequisites [usr/bin/idemctl]' >"$root/usr/share/lintian/overrides/idemctl"
  mkdir "$root/DEBIAN"
  scripts/package-notes.sh control "$version" "$arch" "$(du -sk --apparent-size "$root/usr" | cut -f1)" >"$root/DEBIAN/control"
  (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
  chmod -R go=rX,u+rwX "$root"
  step "deb for $arch" dpkg-deb --root-owner-group -Zxz --build "$root" "$out/idemctl_${version}_$arch.deb"
}

rpm() {
  need rpmbuild rpm
  local root=$PWD/target/dist-rpm work=$PWD/target/dist-rpmbuild
  tree "$root" site-functions too
  rm -rf "$work"
  step "rpm for ${target%%-*}" rpmbuild -bb --quiet --target "${target%%-*}-linux" \
    --define "_topdir $work" --define "_rpmdir $out" --define "idemctl_version $version" \
    --define "idemctl_root $root" --define "idemctl_description $PWD/contrib/package/description.txt" \
    --define "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm" --define "_build_id_links none" \
    --define "__os_install_post %{nil}" --define "_buildhost localhost" --define "source_date_epoch_from_changelog 0" \
    --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" contrib/package/idemctl.spec
}

crate() {
  step "source crate" cargo package --locked --no-verify --allow-dirty --target-dir target/dist-crate
  cp "target/dist-crate/package/idemctl-$version.crate" "$out/"
}

sbom() {
  tool cargo-cyclonedx 0.5.9
  step "SBOM" env PATH="$PWD/.tools/bin:$PATH" cargo cyclonedx --quiet --format json --spec-version 1.5 --target "${targets[0]}" \
    --override-filename "idemctl-$version.cdx"
  # The folder of the checkout is no part of a release.
  sed "s|path+file://$PWD|path+file:///idemctl|g" "idemctl-$version.cdx.json" >"$out/idemctl-$version.cdx.json"
  rm "idemctl-$version.cdx.json"
  step "SBOM and Cargo.lock" scripts/sbom-check.sh "$out/idemctl-$version.cdx.json" "${targets[0]}"
}

sums() {
  (cd "$out" && rm -f SHA256SUMS && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
}

# for_each PART: builds a part for each target.
for_each() {
  for target in "${targets[@]}"; do
    name=idemctl-$version-$target
    binary=${CARGO_TARGET_DIR:-$PWD/target}/$target/$profile/idemctl
    "$1"
  done
}

mkdir -p "$out"
for part in "${parts[@]}"; do
  case $part in
    binary | deb | rpm) for_each "$part" ;;
    tools) for target in "${targets[@]}"; do tools "$target"; done ;;
    crate | sbom | sums) "$part" ;;
    *) echo "there is no part $part" >&2; exit 2 ;;
  esac
done
