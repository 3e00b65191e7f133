# shellcheck shell=sh
# guard.sh PROGRAM FOLDER NAME: creates FOLDER and runs a temporary server in it, until stdin closes, which happens when
# idemctl ends, even if it is killed. Then it removes FOLDER and kills the server. NAME is the name under which PROGRAM
# acts as a server, or empty. stdin begins with more lines of configuration and an empty line: the configuration has the
# password, which arguments would show to every user. After that, only the server holds stdout, so the end of stdout says
# that the server is gone.
trap '' HUP INT TERM
PATH=$PATH:/usr/bin:/bin
umask 077
config=
while IFS= read -r line || exit; do
    [ -n "$line" ] || break
    config="$config$line
"
done
# Here and not in idemctl, so that the folder never exists without its guard.
{ mkdir "$2" && cd "$2"; } 2>&1 || exit
program=$1
[ -z "$3" ] || { ln -s "$1" "$3" && program=./$3; }

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
exec >/dev/null 2>&1

read -r _
cd /
# Twice, because the server may create a file while its folder is being removed.
rm -rf "$2" || rm -rf "$2"
# The group, which idemctl created for this shell and the server, and not the server's id. After the server has ended,
# the system may give its id to another process.
kill -KILL 0
