# shellcheck shell=sh
# guard.sh PROGRAM FOLDER: runs a throw-away server in FOLDER until stdin closes, which happens when idemctl ends, be it
# killed; then removes FOLDER. stdout is the server's alone, so that its end says that the server is gone.
trap '' HUP INT TERM
cd "$2" || exit
exec 3<&0

# The socket's path is relative: nothing in FOLDER's name needs quoting, or is too long to bind.
"$1" - <<'END' 2>&1 &
port 0
unixsocket s
unixsocketperm 700
save ""
appendonly no
databases 16
maxmemory-policy noeviction
loglevel warning
END
server=$!
exec >/dev/null 2>&1

# This shell does not reap the server before it stops waiting for the pipe, so the id is still the server's.
{ read -r _; kill -KILL "$server"; } <&3 &
watcher=$!
wait "$server"
kill -KILL "$watcher"
cd / && PATH=$PATH:/usr/bin:/bin rm -rf "$2"
