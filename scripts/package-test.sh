#!/usr/bin/env bash
# Installs, upgrades, removes and purges the Debian package in a temporary Debian
# root; packages of this machine are not changed. Needs root, mmdebstrap and a Debian
# mirror. If one is missing, it prints a note and succeeds, or fails with REQUIRED=yes.
# ROOT_TAR is a file that caches the bare root; BINARY is an existing synthbot.
set -euo pipefail
cd "$(dirname "$0")/.."
suite=${SUITE:-bookworm}

skip() {
  echo "skipped: $1"
  [ "${REQUIRED:-}" != yes ] || exit 1
  exit 0
}
[ "$(id -u)" -eq 0 ] || skip 'only root can make a Debian root'
for tool in mmdebstrap dpkg-deb chroot go; do
  command -v "$tool" >/dev/null || skip "$tool is missing"
done

work=$(mktemp -d)
chmod 755 "$work"
root=$work/root
trap 'code=$?; rm -rf --one-file-system "$work"; [ "$code" -eq 0 ] || echo "package-test: failed at: $step" >&2' EXIT

step='making the root'
tar=${ROOT_TAR:-$work/root.tar}
# The root is temporary, so nothing is flushed to disk. /usr is merged without the package usrmerge.
[ -s "$tar" ] || timeout 240 mmdebstrap --quiet --variant=apt --dpkgopt=force-unsafe-io --aptopt='Acquire::Languages "none"' \
  --include=ca-certificates,init-system-helpers,passwd,systemd-standalone-sysusers,usr-is-merged \
  --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
  "$suite" "$tar" >"$work/log" 2>&1 || { rm -f "$tar"; tail -n 3 "$work/log"; skip 'no Debian root could be made'; }
mkdir "$root"
tar -xpf "$tar" -C "$root"

step='building packages'
arch=$(dpkg --print-architecture)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1700000000}
if [ -n "${BINARY:-}" ]; then
  cp "$BINARY" "$work/synthbot"
else
  CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -funcalign=8' -o "$work/synthbot" ./cmd/synthbot
fi
for version in 1.0.0 1.1.0 1.2.0; do
  { cat config.example.toml; echo "# As shipped with $version."; } >"$work/example"
  EXAMPLE=$work/example packaging/deb.sh "$work/synthbot" "$root/debs" "$arch" "v$version" 2>/dev/null
done

step='versions of untagged commits sort by date'
made() { # DATE COMMIT: the version of its package
  local deb
  deb=$(PRINTER=$work/synthbot SOURCE_DATE_EPOCH=$1 packaging/deb.sh /bin/true "$work" "$arch" "$2" 2>/dev/null)
  dpkg-deb -f "$deb" Version
}
earlier=$(made 1700000000 f00d) later=$(made 1700000001 0bad-dirty)
dpkg --compare-versions "$earlier" lt "$later"
dpkg --compare-versions "$later" lt "$(made 1700000002 v0.0.1-rc.1)"

# The root's service manager is a fake that records its calls.
mkdir -p "$root/run/systemd/system"
printf '#!/bin/sh\necho "$*" >>/asked\n' >"$root/usr/local/bin/systemctl"
chmod +x "$root/usr/local/bin/systemctl"

in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@" </dev/null; }
install() { in_root dpkg -i "$@" "/debs/synthbot_${package}_$arch.deb"; }
begin() { step=$1; printf -- '-- %s\n' "$step"; : >"$root/asked"; }
is() { [ "$1" = "$2" ] || { printf 'got  %s\nwant %s\n' "$1" "$2"; exit 1; }; }
there() { for f; do [ -e "$root$f" ] || [ -L "$root$f" ] || { echo "$f is missing"; exit 1; }; done; }
gone() { for f; do [ ! -e "$root$f" ] && [ ! -L "$root$f" ] || { echo "$f is still there"; exit 1; }; done; }
owner() { in_root stat -c '%a %U:%G' "$1"; }
asked() { grep -qxF -- "$1" "$root/asked" || { echo "the service manager was not asked to: $1"; cat "$root/asked"; exit 1; }; }
never_asked() { ! grep -E "$1" "$root/asked" || { echo "the service manager was asked to $1"; exit 1; }; }
files() { (cd "$root" && find . -path ./proc -prune -o -path ./debs -prune -o -path ./var/lib/dpkg -prune -o -path ./var/log -prune -o -print | sort); }

config=/etc/synthbot/config.toml
mv "$root/usr/bin/systemd-sysusers" "$root/root/" # first without it
touch "$root/asked"

begin 'install'
mkdir -p "$root/var/lib/private" # systemd's own
files >"$work/before"
in_root apt-get install -qqy --no-install-recommends "/debs/synthbot_1.0.0_$arch.deb" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
grep -q 'synthbot: edit /etc/synthbot/config.toml' "$work/log"
is "$(owner $config)" '640 root:synthbot'
is "$(in_root getent passwd synthbot | cut -d: -f6,7)" '/var/lib/synthbot:/usr/sbin/nologin'
is "$(in_root cat /var/lib/dpkg/info/synthbot.conffiles)" "$config"
is "$(in_root dpkg --verify synthbot)" ''
gone /etc/systemd/system/multi-user.target.wants/synthbot.service
never_asked 'start|enable'
in_root synthbot version
chroot --userspec=synthbot:synthbot "$root" /usr/bin/env -i STATE_DIRECTORY=/tmp/state synthbot check -c $config >/dev/null
chroot --userspec=nobody:nogroup "$root" /usr/bin/env -i cat $config >/dev/null 2>&1 && { echo 'everybody can read the configuration'; exit 1; }
zcat "$root/usr/share/man/man1/synthbot.1.gz" | grep -q '^\.TH SYNTHBOT 1'
in_root bash -n /usr/share/bash-completion/completions/synthbot
grep -q '^#compdef synthbot' "$root/usr/share/zsh/vendor-completions/_synthbot"
there /usr/share/fish/vendor_completions.d/synthbot.fish /usr/lib/systemd/system/synthbot{,@}.service /usr/share/doc/synthbot/{copyright,examples/config.toml}

begin 'upgrade, with the configuration as it was shipped'
# Does what `systemctl enable` and a running bot would do.
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -s /usr/lib/systemd/system/synthbot.service "$root/etc/systemd/system/multi-user.target.wants/"
mkdir -p "$root/var/lib/private/synthbot"
echo remembered >"$root/var/lib/private/synthbot/bot.db"
ln -s private/synthbot "$root/var/lib/synthbot"
package=1.1.0 install >/dev/null
is "$(tail -n 1 "$root$config")" '# As shipped with 1.1.0.'
is "$(owner $config)" '640 root:synthbot'
asked 'try-restart synthbot.service'
never_asked '(^| )stop'
there /etc/systemd/system/multi-user.target.wants/synthbot.service /var/lib/synthbot/bot.db

begin 'upgrade, with a changed configuration'
printf '[bot]\nname = "Mine"\n' >"$root$config"
chmod 600 "$root$config"
chown 0:0 "$root$config"
package=1.2.0 install --force-confdef >/dev/null
is "$(cat "$root$config")" $'[bot]\nname = "Mine"'
is "$(owner $config)" '600 root:root'
is "$(tail -n 1 "$root$config.dpkg-dist")" '# As shipped with 1.2.0.'

begin 'remove'
echo secret >"$root/etc/synthbot/telegram_token"
in_root dpkg -r synthbot >/dev/null
asked 'stop synthbot.service'
gone /usr/bin/synthbot /usr/lib/systemd/system/synthbot{,@}.service /usr/share/man/man1/synthbot.1.gz
there /var/lib/synthbot/bot.db /etc/synthbot/telegram_token
is "$(cat "$root$config")" $'[bot]\nname = "Mine"'

begin 'install again'
package=1.2.0 install --force-confdef >/dev/null
is "$(cat "$root$config")" $'[bot]\nname = "Mine"'
is "$(owner $config)" '600 root:root'
is "$(cat "$root/var/lib/synthbot/bot.db")" remembered
there /etc/systemd/system/multi-user.target.wants/synthbot.service
gone /etc/systemd/system/synthbot.service # no mask is left

begin 'purge'
in_root dpkg -P synthbot >/dev/null
gone /var/lib/synthbot /var/lib/private/synthbot /etc/synthbot
in_root getent passwd synthbot >/dev/null
in_root userdel synthbot
# Files that apt, passwd and systemd's helper leave behind.
theirs='^\./(asked|tmp/state|var/cache/.*|var/lib/apt/.*|etc/\.pwd\.lock|etc/(passwd|group|g?shadow|sub[ug]id)-|var/lib/systemd(/deb-systemd-helper-[a-z]+(/[a-z.-]+\.wants)?)?)$'
files | grep -Ev "$theirs" >"$work/after"
grep -Ev "$theirs" "$work/before" |
  diff - "$work/after" || { echo 'purge left or removed other files'; exit 1; }

begin 'install with systemd-sysusers, and purge at once'
mv "$root/root/systemd-sysusers" "$root/usr/bin/"
mv "$root/usr/sbin/useradd" "$root/root/"
package=1.2.0 install >/dev/null 2>&1
is "$(owner $config)" '640 root:synthbot'
is "$(in_root getent passwd synthbot | cut -d: -f6,7)" '/var/lib/synthbot:/usr/sbin/nologin'
in_root dpkg -P synthbot >/dev/null
gone /etc/synthbot /usr/bin/synthbot

begin 'install where a configuration is already'
mkdir "$root/etc/synthbot"
printf '[bot]\nname = "Mine"\n' >"$root$config"
chmod 600 "$root$config"
package=1.2.0 install --force-confdef >/dev/null 2>&1
is "$(cat "$root$config")" $'[bot]\nname = "Mine"'
is "$(owner $config)" '640 root:synthbot' # else the bot could not read it

echo "all good after ${SECONDS}s"
