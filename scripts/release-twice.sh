#!/usr/bin/env bash
# Checks that releases are reproducible: builds the working tree twice, in two folders,
# with different clocks, file dates, umasks and names, and compares the results.
# scripts/release-twice.sh [--cold] [ARCH...]; with --cold the second build has an empty
# build cache and compiles everything again (minutes).
set -euo pipefail
cd "$(dirname "$0")/.."
cold=
[ "${1:-}" != --cold ] || { cold=yes; shift; }
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
export COMMIT=0123456789ab SOURCE_DATE_EPOCH=1700000000
version=v0.0.0-twice.1

copy() { # FOLDER: tracked and untracked files, without ignored ones
  mkdir -p "$1"
  git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done |
    tar --null -T - -cf - | tar -xf - -C "$1" "${@:2}"
}

first=$work/first second=$work/second/with/a-longer-name
copy "$first"
copy "$second" -m
mkdir "$work/other"
touch "$work/other/mine"
! "$first/scripts/release.sh" "$version" "$work/other" 2>/dev/null && [ -e "$work/other/mine" ] || { echo 'a folder with other files was deleted'; exit 1; }
"$first/scripts/release.sh" "$version" "$work/a" "$@" >/dev/null
[ -z "$cold" ] || export GOCACHE=$work/cache
(umask 077 && TMPDIR=$work/second TZ=Asia/Tokyo LANG=C.UTF-8 HOME=$HOME \
  "$second/scripts/release.sh" "$version" "$work/b" "$@" >/dev/null)

(cd "$work/b" && sha256sum --quiet --strict -c "$work/a/SHA256SUMS")
diff -r "$work/a" "$work/b"
for f in "$work"/a/*_linux_*; do
  ! grep -qaF -e "$work" -e "$HOME/go" "$f" || { echo "$(basename "$f") says where it was built"; exit 1; }
done
for f in "$work"/a/*.cdx.json; do
  grep -q '"timestamp": "2023-11-14T22:13:20Z"' "$f" && grep -q 'pkg:golang/go.etcd.io/bbolt@' "$f" && grep -q 'pkg:golang/std@' "$f" ||
    { echo "$(basename "$f") lists no modules or has another date"; exit 1; }
done
echo "the same bytes twice:"
cat "$work/a/SHA256SUMS"
