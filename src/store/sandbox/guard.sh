# shellcheck shell=sh
# guard.sh PROGRAM FOLDER NAME: makes FOLDER and runs a throw-away server in it, under NAME where it serves only so
# (else empty), until stdin closes, which happens when idemctl ends, be it killed; then removes FOLDER. stdin begins with
# more lines of configuration and an empty line: the configuration has the password, which arguments would show to
# everyone. stdout is the server's alone from then on, so that its end says that the server is gone.
trap '' HUP INT TERM
PATH=$PATH:/usr/bin:/bin
umask 077
config=
while IFS= read -r line || exit; do
    [ -n "$line" ] || break
    config="$config$line
"
done
# Here and not in idemctl, so that at no moment a folder is there without its guard.
{ mkdir "$2" && cd "$2"; } 2>&1 || exit
program=$1
[ -z "$3" ] || { ln -s "$1" "$3" && program=./$3; }
exec 3<&0

# The socket's path is relative: nothing in FOLDER's name needs quoting, or is too long to bind.
"$program" - <<END 2>&1 &
port 0
unixsocket s
unixsocketperm 700
save ""
appendonly no
databases 16
maxmemory-policy noeviction
loglevel warning
$config
END
server=$!
exec >/dev/null 2>&1

# This shell does not reap the server before it stops waiting for the pipe, so the id is still the server's.
{ read -r _; kill -KILL "$server"; } <&3 &
watcher=$!
wait "$server"
kill -KILL "$watcher"
cd / && rm -rf "$2"
