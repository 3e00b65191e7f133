#!/usr/bin/env bash
# Prints what a Debian package says of itself: changelog VERSION, copyright, or control VERSION ARCHITECTURE KILOBYTES.
# SOURCE_DATE_EPOCH is the day of the release.
set -euo pipefail
cd "$(dirname "$0")/.."
maintainer="The idemctl authors <idemctl@users.noreply.github.com>"

case $1 in
  changelog)
    cat <<END
idemctl ($2) unstable; urgency=medium

  * Release $2; NEWS.gz says what is new.

 -- $maintainer  $(date -R -u -d "@$SOURCE_DATE_EPOCH")
END
    ;;
  copyright)
    cat <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: idemctl

Files: *
Copyright: $(date -u -d "@$SOURCE_DATE_EPOCH" +%Y) The idemctl authors
License: Apache-2.0 or MIT

License: Apache-2.0
 On Debian systems the text of this licence is in
 /usr/share/common-licenses/Apache-2.0.

License: MIT
$(sed -n '5,$p' LICENSE-MIT | sed 's/^$/./; s/^/ /')
END
    ;;
  control)
    cat <<END
Package: idemctl
Version: $2
Architecture: $3
Maintainer: $maintainer
Installed-Size: $4
Section: database
Priority: optional
Description: Inspect, unlock and race idempotency keys in Redis
$(sed 's/^/ /' contrib/package/description.txt)
END
    ;;
  *) echo "changelog, copyright or control, not $1" >&2; exit 2 ;;
esac
