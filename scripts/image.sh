#!/usr/bin/env bash
# Builds the image of contrib/image/Containerfile for amd64 and arm64, of the archives in target/dist/, with buildah:
#
#   scripts/image.sh NAME DIGEST    pushes it to its registry as well, and writes its digest into the file DIGEST
set -euo pipefail
cd "$(dirname "$0")/.."
name=$1 context=target/dist-image
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)

rm -rf "$context" && mkdir -p "$context/state"
cp /etc/ssl/certs/ca-certificates.crt "$context/"
buildah manifest rm "$name" 2>/dev/null || true
for arch in amd64 arm64; do
  case $arch in amd64) machine=x86_64 ;; *) machine=aarch64 ;; esac
  mkdir "$context/$arch"
  tar -xzf target/dist/idemctl-*-"$machine"-unknown-linux-musl.tar.gz -C "$context/$arch" --strip-components=1 --wildcards '*/idemctl'
  buildah build --platform "linux/$arch" --timestamp "$SOURCE_DATE_EPOCH" --file contrib/image/Containerfile --manifest "$name" "$context"
done
[ -z "${2:-}" ] || buildah manifest push --all --digestfile "$2" "$name" "docker://$name"
