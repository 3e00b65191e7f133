# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_idemctl_global_optspecs
    string join \n u/url= h/host= p/port= s/socket= sentinel= master-name= sentinel-user= sentinel-pass-file= n/db= c/cluster user= a/pass= askpass pass-file= no-auth-warning context= config= timeout= connect-timeout= sandbox tls cacert= cacertdir= cert= key= sni= insecure color= help V/version
end

function __fish_idemctl_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_idemctl_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_idemctl_using_subcommand
    set -l cmd (__fish_idemctl_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c idemctl -n "__fish_idemctl_needs_command" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_needs_command" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_needs_command" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_needs_command" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_needs_command" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_needs_command" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_needs_command" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_needs_command" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_needs_command" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_needs_command" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_needs_command" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_needs_command" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_needs_command" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_needs_command" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_needs_command" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_needs_command" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_needs_command" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_needs_command" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_needs_command" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_needs_command" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_needs_command" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_needs_command" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_needs_command" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_needs_command" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_needs_command" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_needs_command" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_needs_command" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_needs_command" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_needs_command" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_needs_command" -s V -l version -d 'Print version'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "inspect" -d 'Show a key\'s records, what is wrong with them, and what the next request with the key gets'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "get" -d 'Show a key\'s records, what is wrong with them, and what the next request with the key gets'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "list" -d 'List the records of the chosen schemas'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "ls" -d 'List the records of the chosen schemas'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "stats" -d 'Count records by schema and state: how many, how large, how old'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "check" -d 'Say in one line whether locks are stuck, for monitoring'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "force-unlock" -d 'Remove a lock that nobody will release, so that the next request executes'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "extend" -d 'Give locks more time, so that no retry executes while somebody finds out what became of the operation'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "complete" -d 'Store the response of an operation whose worker could not, so that retries get it'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "release" -d 'Give a lock up as the service does, so that the next request executes'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "begin" -d 'Take a key\'s lock as the service does, or learn what a request gets'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "sweep" -d 'Find locks that nobody will release, and remove them after two looks'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "purge" -d 'Remove many records, each only if it is still what was seen'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "restore" -d 'Bring back what a backup holds, where nothing stands now'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "audit" -d 'Show the log of what idemctl changed on this machine, the newest last'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "race" -d 'Race simultaneous requests with one idempotency key and say whether exactly one got through'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "simulate" -d 'Play the ways in which idempotency fails, and say who is hurt'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "sandbox" -d 'Run a command against a private throw-away server'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "schema" -d 'List the schemas idemctl knows, show one, or check one of your own'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "context" -d 'List the contexts of the config file, show one, or choose the one that is used'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "config" -d 'Show what flags, variables and the config file come to'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "completions" -d 'Print a shell\'s completion script'
complete -c idemctl -n "__fish_idemctl_needs_command" -f -a "man" -d 'Write the manual pages, one for each command'
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -s o -l output -d 'How to show the records' -r -f -a "table\t'For people'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l body -d 'Write the response\'s body, as the client would get it, to a new FILE that only you may read (`-`: stdout, and nothing else)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l watch -d 'Follow the record, looking every INTERVAL [default: 1s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l until -d 'Follow the record until it is in this state, then end' -r -f -a "completed\t'A result is stored'
absent\t'Nothing is left'"
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l overdue -d 'Report locks held longer than this as `overdue`' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l schema -d 'Schemas to work on; `idemctl schema list` names them [default: all, or the context\'s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l schema-dir -d 'Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l prefix -d 'Prefix of this deployment\'s keys, of the one schema that is named; `idemctl schema show NAME` says where it stands' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l lock-ttl -d 'Lock TTL of this deployment for the one schema that is named: what is stated may select for a change' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l result-ttl -d 'Result TTL of this deployment for the one schema that is named' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -s 0 -l null -d 'Keys on stdin end with NUL instead of a newline'
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l full -d 'Read values of any size whole; without it 64 KiB'
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l reveal -d 'Show Authorization, Cookie, Set-Cookie and their like'
complete -c idemctl -n "__fish_idemctl_using_subcommand inspect" -l force -d 'Let --body replace a file that is there; a link is replaced, never followed'
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -s o -l output -d 'How to show the records' -r -f -a "table\t'For people'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l body -d 'Write the response\'s body, as the client would get it, to a new FILE that only you may read (`-`: stdout, and nothing else)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l watch -d 'Follow the record, looking every INTERVAL [default: 1s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l until -d 'Follow the record until it is in this state, then end' -r -f -a "completed\t'A result is stored'
absent\t'Nothing is left'"
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l overdue -d 'Report locks held longer than this as `overdue`' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l schema -d 'Schemas to work on; `idemctl schema list` names them [default: all, or the context\'s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l schema-dir -d 'Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l prefix -d 'Prefix of this deployment\'s keys, of the one schema that is named; `idemctl schema show NAME` says where it stands' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l lock-ttl -d 'Lock TTL of this deployment for the one schema that is named: what is stated may select for a change' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l result-ttl -d 'Result TTL of this deployment for the one schema that is named' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -s 0 -l null -d 'Keys on stdin end with NUL instead of a newline'
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l full -d 'Read values of any size whole; without it 64 KiB'
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l reveal -d 'Show Authorization, Cookie, Set-Cookie and their like'
complete -c idemctl -n "__fish_idemctl_using_subcommand get" -l force -d 'Let --body replace a file that is there; a link is replaced, never followed'
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -s o -l output -d 'How to show the records' -r -f -a "table\t'For people: as many columns as fit; a line a record where stdout is no terminal'
wide\t'For people: every column, however long the lines'
csv\t'Comma-separated values, for a spreadsheet: times in milliseconds, sizes in bytes'
tsv\t'The same, separated by tabs'
name\t'Idempotency keys alone, one a line, for `purge -`'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l columns -d 'Columns of a table, csv or tsv, in this order' -r -f -a "key\t''
schema\t''
state\t''
owner\t''
ttl\t''
age\t''
size\t''
created-at\t''
expires-at\t''
status\t''
fingerprint\t''
findings\t''
redis-keys\t''"
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l sort -d 'Walk the whole keyspace first, then show the oldest, the soonest to expire, the largest, or the first by key' -r -f -a "age\t'Oldest first'
ttl\t'Soonest to expire first'
size\t'Largest first'
key\t'By idempotency key'"
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l state -d 'Only records in this state' -r -f -a "in-progress\t'A lock is held'
completed\t'A result is stored'
unreadable\t'The schema cannot read it'"
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l older-than -d 'Only records at least this old' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l status -d 'Only stored responses with this HTTP status, such as 201, or 5xx for all of a class' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l body-contains -d 'Only stored responses whose body holds this text, which is compared byte by byte; values are read whole' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l finding -d 'Only records with this finding' -r -f -a "no-expiry\t''
excess-ttl\t''
overdue\t''
leftover-lock\t''
unreadable\t''
foreign-schema\t''
wrong-type\t''
result-no-expiry\t''
short-result-ttl\t''
oversized\t''"
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l newer-than -l since -d 'Only records at most this old' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l ttl-below -d 'Only records with less than this left' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l ttl-above -d 'Only records with more than this left, those without expiry included' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l owner -d 'Only locks whose owner matches this glob' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l fingerprint -d 'Only records whose fingerprint of the payload matches this glob' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l match -d 'Only idempotency keys that match this glob (`*`, `?`, `[a-z]`, `\\` escapes)' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l limit -d 'End after this many records' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l read-from -d 'Walk replicas in place of masters, where there are any: they may be behind' -r -f -a "master\t'The masters'
replica\t'A replica of each master'"
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l rate -d 'Look at no more than so many Redis keys a second, e.g. 5000/s' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l scan-count -d 'Redis keys that a SCAN looks at: fewer stall other clients less, more cost fewer round trips [default: 500, and up to 2000 where the server is far away]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l overdue -d 'Report locks held longer than this as `overdue`' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l schema -d 'Schemas to work on; `idemctl schema list` names them [default: all, or the context\'s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l schema-dir -d 'Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l prefix -d 'Prefix of this deployment\'s keys, of the one schema that is named; `idemctl schema show NAME` says where it stands' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l lock-ttl -d 'Lock TTL of this deployment for the one schema that is named: what is stated may select for a change' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l result-ttl -d 'Result TTL of this deployment for the one schema that is named' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l no-header -d 'Leave the heading out'
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l reverse -d 'The other end of --sort first'
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l no-expiry -d 'Only records without expiry'
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l full -d 'Read values whole, response bodies included'
complete -c idemctl -n "__fish_idemctl_using_subcommand list" -l reveal -d 'Show Authorization, Cookie, Set-Cookie and their like'
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -s o -l output -d 'How to show the records' -r -f -a "table\t'For people: as many columns as fit; a line a record where stdout is no terminal'
wide\t'For people: every column, however long the lines'
csv\t'Comma-separated values, for a spreadsheet: times in milliseconds, sizes in bytes'
tsv\t'The same, separated by tabs'
name\t'Idempotency keys alone, one a line, for `purge -`'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l columns -d 'Columns of a table, csv or tsv, in this order' -r -f -a "key\t''
schema\t''
state\t''
owner\t''
ttl\t''
age\t''
size\t''
created-at\t''
expires-at\t''
status\t''
fingerprint\t''
findings\t''
redis-keys\t''"
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l sort -d 'Walk the whole keyspace first, then show the oldest, the soonest to expire, the largest, or the first by key' -r -f -a "age\t'Oldest first'
ttl\t'Soonest to expire first'
size\t'Largest first'
key\t'By idempotency key'"
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l state -d 'Only records in this state' -r -f -a "in-progress\t'A lock is held'
completed\t'A result is stored'
unreadable\t'The schema cannot read it'"
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l older-than -d 'Only records at least this old' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l status -d 'Only stored responses with this HTTP status, such as 201, or 5xx for all of a class' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l body-contains -d 'Only stored responses whose body holds this text, which is compared byte by byte; values are read whole' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l finding -d 'Only records with this finding' -r -f -a "no-expiry\t''
excess-ttl\t''
overdue\t''
leftover-lock\t''
unreadable\t''
foreign-schema\t''
wrong-type\t''
result-no-expiry\t''
short-result-ttl\t''
oversized\t''"
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l newer-than -l since -d 'Only records at most this old' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l ttl-below -d 'Only records with less than this left' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l ttl-above -d 'Only records with more than this left, those without expiry included' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l owner -d 'Only locks whose owner matches this glob' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l fingerprint -d 'Only records whose fingerprint of the payload matches this glob' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l match -d 'Only idempotency keys that match this glob (`*`, `?`, `[a-z]`, `\\` escapes)' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l limit -d 'End after this many records' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l read-from -d 'Walk replicas in place of masters, where there are any: they may be behind' -r -f -a "master\t'The masters'
replica\t'A replica of each master'"
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l rate -d 'Look at no more than so many Redis keys a second, e.g. 5000/s' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l scan-count -d 'Redis keys that a SCAN looks at: fewer stall other clients less, more cost fewer round trips [default: 500, and up to 2000 where the server is far away]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l overdue -d 'Report locks held longer than this as `overdue`' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l schema -d 'Schemas to work on; `idemctl schema list` names them [default: all, or the context\'s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l schema-dir -d 'Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l prefix -d 'Prefix of this deployment\'s keys, of the one schema that is named; `idemctl schema show NAME` says where it stands' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l lock-ttl -d 'Lock TTL of this deployment for the one schema that is named: what is stated may select for a change' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l result-ttl -d 'Result TTL of this deployment for the one schema that is named' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l no-header -d 'Leave the heading out'
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l reverse -d 'The other end of --sort first'
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l no-expiry -d 'Only records without expiry'
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l full -d 'Read values whole, response bodies included'
complete -c idemctl -n "__fish_idemctl_using_subcommand ls" -l reveal -d 'Show Authorization, Cookie, Set-Cookie and their like'
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l by -d 'What to count by, beside the schema' -r -f -a "state\t'The record\'s state'
owner\t'Who holds the lock'
prefix\t'The Redis key up to its last colon'
status\t'The HTTP status of the stored response'
finding\t'Each finding: a record with two counts twice'"
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -s o -l output -d 'How to show the figures' -r -f -a "table\t'For people'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l prometheus -d 'Write the figures in Prometheus\'s text format to this file, at once and for others to read, or to stdout without FILE' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l state -d 'Only records in this state' -r -f -a "in-progress\t'A lock is held'
completed\t'A result is stored'
unreadable\t'The schema cannot read it'"
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l older-than -d 'Only records at least this old' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l status -d 'Only stored responses with this HTTP status, such as 201, or 5xx for all of a class' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l body-contains -d 'Only stored responses whose body holds this text, which is compared byte by byte; values are read whole' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l finding -d 'Only records with this finding' -r -f -a "no-expiry\t''
excess-ttl\t''
overdue\t''
leftover-lock\t''
unreadable\t''
foreign-schema\t''
wrong-type\t''
result-no-expiry\t''
short-result-ttl\t''
oversized\t''"
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l newer-than -l since -d 'Only records at most this old' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l ttl-below -d 'Only records with less than this left' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l ttl-above -d 'Only records with more than this left, those without expiry included' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l owner -d 'Only locks whose owner matches this glob' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l fingerprint -d 'Only records whose fingerprint of the payload matches this glob' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l match -d 'Only idempotency keys that match this glob (`*`, `?`, `[a-z]`, `\\` escapes)' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l read-from -d 'Walk replicas in place of masters, where there are any: they may be behind' -r -f -a "master\t'The masters'
replica\t'A replica of each master'"
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l rate -d 'Look at no more than so many Redis keys a second, e.g. 5000/s' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l scan-count -d 'Redis keys that a SCAN looks at: fewer stall other clients less, more cost fewer round trips [default: 500, and up to 2000 where the server is far away]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l overdue -d 'Report locks held longer than this as `overdue`' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l schema -d 'Schemas to work on; `idemctl schema list` names them [default: all, or the context\'s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l schema-dir -d 'Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l prefix -d 'Prefix of this deployment\'s keys, of the one schema that is named; `idemctl schema show NAME` says where it stands' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l lock-ttl -d 'Lock TTL of this deployment for the one schema that is named: what is stated may select for a change' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l result-ttl -d 'Result TTL of this deployment for the one schema that is named' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand stats" -l no-expiry -d 'Only records without expiry'
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l warning -d 'WARNING from so many orphaned locks on' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l critical -d 'CRITICAL from so many orphaned locks on' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l newer-than -l since -d 'Only records at most this old' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l ttl-below -d 'Only records with less than this left' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l ttl-above -d 'Only records with more than this left, those without expiry included' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l owner -d 'Only locks whose owner matches this glob' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l fingerprint -d 'Only records whose fingerprint of the payload matches this glob' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l match -d 'Only idempotency keys that match this glob (`*`, `?`, `[a-z]`, `\\` escapes)' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l read-from -d 'Walk replicas in place of masters, where there are any: they may be behind' -r -f -a "master\t'The masters'
replica\t'A replica of each master'"
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l rate -d 'Look at no more than so many Redis keys a second, e.g. 5000/s' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l scan-count -d 'Redis keys that a SCAN looks at: fewer stall other clients less, more cost fewer round trips [default: 500, and up to 2000 where the server is far away]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l schema -d 'Schemas to work on; `idemctl schema list` names them [default: all, or the context\'s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l schema-dir -d 'Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l prefix -d 'Prefix of this deployment\'s keys, of the one schema that is named; `idemctl schema show NAME` says where it stands' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l lock-ttl -d 'Lock TTL of this deployment for the one schema that is named: what is stated may select for a change' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l result-ttl -d 'Result TTL of this deployment for the one schema that is named' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand check" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l expect -d 'Go on only if the lock is the one that --dry-run printed as a token, or, which says less, if it is this owner\'s' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -s o -l output -d 'How to show the record and what was done' -r -f -a "table\t'For people'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l confirm -d 'Name of the protected context, or of a purge\'s server: for scripts, what a person would have to type' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l reason -d 'Why, for the audit log' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l wait-replicas -d 'After each batch of changes wait until this many replicas have it; exit status 3 when they have not' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l wait-timeout -d 'How long to wait for them [default: 1s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l backup -d 'Where to back up what is removed [default: a new file in $XDG_STATE_HOME/idemctl/backups]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l overdue -d 'Report locks held longer than this as `overdue`' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l schema -d 'Schemas to work on; `idemctl schema list` names them [default: all, or the context\'s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l schema-dir -d 'Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l prefix -d 'Prefix of this deployment\'s keys, of the one schema that is named; `idemctl schema show NAME` says where it stands' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l lock-ttl -d 'Lock TTL of this deployment for the one schema that is named: what is stated may select for a change' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l result-ttl -d 'Result TTL of this deployment for the one schema that is named' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -s y -l yes -d 'Go ahead without asking'
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l dry-run -d 'Show what would be done and change nothing'
complete -c idemctl -n "__fish_idemctl_using_subcommand force-unlock" -l no-backup -d 'Remove without a backup'
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l key-file -d 'File with idempotency keys or Redis keys (`-`: stdin), one a line' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l for -d 'How long the locks live from now on' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -s o -l output -d 'How to show what was done; both kinds of JSON are one object, jsonl in one line' -r -f -a "table\t'For people'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l confirm -d 'Name of the protected context, or of a purge\'s server: for scripts, what a person would have to type' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l reason -d 'Why, for the audit log' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l wait-replicas -d 'After each batch of changes wait until this many replicas have it; exit status 3 when they have not' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l wait-timeout -d 'How long to wait for them [default: 1s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l schema -d 'Schemas to work on; `idemctl schema list` names them [default: all, or the context\'s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l schema-dir -d 'Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l prefix -d 'Prefix of this deployment\'s keys, of the one schema that is named; `idemctl schema show NAME` says where it stands' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l lock-ttl -d 'Lock TTL of this deployment for the one schema that is named: what is stated may select for a change' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l result-ttl -d 'Result TTL of this deployment for the one schema that is named' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -s 0 -l null -d 'Keys in the file, or on stdin, end with NUL instead of a newline'
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -s y -l yes -d 'Go ahead without asking'
complete -c idemctl -n "__fish_idemctl_using_subcommand extend" -l dry-run -d 'Show what would be done and change nothing'
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l owner -d 'In whose name, where the schema checks it [default: asked for on a terminal]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l status -d 'Status code of the response' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l header -d 'Header of the response; may be repeated' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l body -d 'Body of the response: @FILE, `-` for stdin, or the text itself (@@TEXT for one that begins with @)' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l error -d 'Store it as the result of an operation that failed, with this error, where the schema keeps one' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l fingerprint -d 'Hash of the request\'s payload, where the schema compares it and there is no lock that has it' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -s o -l output -d 'How to show the record and what was done' -r -f -a "table\t'For people'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l confirm -d 'Name of the protected context, or of a purge\'s server: for scripts, what a person would have to type' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l reason -d 'Why, for the audit log' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l wait-replicas -d 'After each batch of changes wait until this many replicas have it; exit status 3 when they have not' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l wait-timeout -d 'How long to wait for them [default: 1s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l backup -d 'Where to back up what is removed [default: a new file in $XDG_STATE_HOME/idemctl/backups]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l schema -d 'Schemas to work on; `idemctl schema list` names them [default: all, or the context\'s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l schema-dir -d 'Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l prefix -d 'Prefix of this deployment\'s keys, of the one schema that is named; `idemctl schema show NAME` says where it stands' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l lock-ttl -d 'Lock TTL of this deployment for the one schema that is named: what is stated may select for a change' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l result-ttl -d 'Result TTL of this deployment for the one schema that is named' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l create -d 'Store it although nothing is there: the lock has expired'
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l replace -d 'Store it over another result, or over what cannot be read'
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -s y -l yes -d 'Go ahead without asking'
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l dry-run -d 'Show what would be done and change nothing'
complete -c idemctl -n "__fish_idemctl_using_subcommand complete" -l no-backup -d 'Remove without a backup'
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l owner -d 'In whose name, where the schema checks it [default: asked for on a terminal]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -s o -l output -d 'How to show the record and what was done' -r -f -a "table\t'For people'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l confirm -d 'Name of the protected context, or of a purge\'s server: for scripts, what a person would have to type' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l reason -d 'Why, for the audit log' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l wait-replicas -d 'After each batch of changes wait until this many replicas have it; exit status 3 when they have not' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l wait-timeout -d 'How long to wait for them [default: 1s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l backup -d 'Where to back up what is removed [default: a new file in $XDG_STATE_HOME/idemctl/backups]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l schema -d 'Schemas to work on; `idemctl schema list` names them [default: all, or the context\'s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l schema-dir -d 'Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l prefix -d 'Prefix of this deployment\'s keys, of the one schema that is named; `idemctl schema show NAME` says where it stands' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l lock-ttl -d 'Lock TTL of this deployment for the one schema that is named: what is stated may select for a change' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l result-ttl -d 'Result TTL of this deployment for the one schema that is named' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -s y -l yes -d 'Go ahead without asking'
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l dry-run -d 'Show what would be done and change nothing'
complete -c idemctl -n "__fish_idemctl_using_subcommand release" -l no-backup -d 'Remove without a backup'
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l owner -d 'Worker\'s id, where the schema keeps one [default: a new UUID, which is shown]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l fingerprint -d 'Hash of the request\'s payload, where the schema compares it [default: the stored one, or none]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -s o -l output -d 'How to show the record and what was done' -r -f -a "table\t'For people'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l confirm -d 'Name of the protected context, or of a purge\'s server: for scripts, what a person would have to type' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l reason -d 'Why, for the audit log' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l wait-replicas -d 'After each batch of changes wait until this many replicas have it; exit status 3 when they have not' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l wait-timeout -d 'How long to wait for them [default: 1s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l backup -d 'Where to back up what is removed [default: a new file in $XDG_STATE_HOME/idemctl/backups]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l schema -d 'Schemas to work on; `idemctl schema list` names them [default: all, or the context\'s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l schema-dir -d 'Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l prefix -d 'Prefix of this deployment\'s keys, of the one schema that is named; `idemctl schema show NAME` says where it stands' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l lock-ttl -d 'Lock TTL of this deployment for the one schema that is named: what is stated may select for a change' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l result-ttl -d 'Result TTL of this deployment for the one schema that is named' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -s y -l yes -d 'Go ahead without asking'
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l dry-run -d 'Show what would be done and change nothing'
complete -c idemctl -n "__fish_idemctl_using_subcommand begin" -l no-backup -d 'Remove without a backup'
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l older-than -d 'Locks known to be held longer than this (`overdue`)' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l include -d 'Also locks with more time left than the lock TTL that is stated (`excess-ttl`), locks beside a result behind which no worker can be (`leftover-lock`), or values in a lock\'s place that do not decode (`unreadable`: with --schema, and --prefix or a --match that has a literal part)' -r -f -a "excess-ttl\t''
leftover-lock\t''
unreadable\t''"
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l newer-than -l since -d 'Only records at most this old' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l ttl-below -d 'Only records with less than this left' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l ttl-above -d 'Only records with more than this left, those without expiry included' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l owner -d 'Only locks whose owner matches this glob' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l fingerprint -d 'Only records whose fingerprint of the payload matches this glob' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l match -d 'Only idempotency keys that match this glob (`*`, `?`, `[a-z]`, `\\` escapes)' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l grace -d 'How long to wait between the two looks' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l owner-alive -d 'Leave locks alone whose owner is alive: a shell command that gets the owner as $1 and in IDEMCTL_OWNER, and ends with exit status 0 for one that is. One that takes longer than 10s counts as alive; locks of schemas that keep no owner are not asked about' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l action -d 'What to do to the locks' -r -f -a "unlock\t'Remove the lock: the next request executes'
expire\t'Give it the lock TTL that is stated, so that a worker still at it can finish; never more time than it has'"
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -s o -l output -d 'How to show what was found and done; both kinds of JSON are one object, jsonl in one line' -r -f -a "table\t'For people'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l read-from -d 'Walk replicas in place of masters, where there are any: they may be behind' -r -f -a "master\t'The masters'
replica\t'A replica of each master'"
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l rate -d 'Look at no more than so many Redis keys a second, e.g. 5000/s' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l scan-count -d 'Redis keys that a SCAN looks at: fewer stall other clients less, more cost fewer round trips [default: 500, and up to 2000 where the server is far away]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l confirm -d 'Name of the protected context, or of a purge\'s server: for scripts, what a person would have to type' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l reason -d 'Why, for the audit log' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l wait-replicas -d 'After each batch of changes wait until this many replicas have it; exit status 3 when they have not' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l wait-timeout -d 'How long to wait for them [default: 1s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l backup -d 'Where to back up what is removed [default: a new file in $XDG_STATE_HOME/idemctl/backups]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l schema -d 'Schemas to work on; `idemctl schema list` names them [default: all, or the context\'s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l schema-dir -d 'Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l prefix -d 'Prefix of this deployment\'s keys, of the one schema that is named; `idemctl schema show NAME` says where it stands' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l lock-ttl -d 'Lock TTL of this deployment for the one schema that is named: what is stated may select for a change' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l result-ttl -d 'Result TTL of this deployment for the one schema that is named' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l orphaned -d 'Locks without expiry (`no-expiry`), also beside a result: nothing but a person or a sweep ends them'
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l check -d 'Deprecated, use `idemctl check`: say in one line what is found, change nothing, and end with exit status 1 when that is anything'
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -s y -l yes -d 'Go ahead without asking'
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l dry-run -d 'Show what would be done and change nothing'
complete -c idemctl -n "__fish_idemctl_using_subcommand sweep" -l no-backup -d 'Remove without a backup'
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l state -d 'Only records in this state' -r -f -a "in-progress\t'A lock is held'
completed\t'A result is stored'
unreadable\t'The schema cannot read it'"
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l older-than -d 'Only records at least this old' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l status -d 'Only stored responses with this HTTP status, such as 201, or 5xx for all of a class' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l body-contains -d 'Only stored responses whose body holds this text, which is compared byte by byte; values are read whole' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l finding -d 'Only records with this finding' -r -f -a "no-expiry\t''
excess-ttl\t''
overdue\t''
leftover-lock\t''
unreadable\t''
foreign-schema\t''
wrong-type\t''
result-no-expiry\t''
short-result-ttl\t''
oversized\t''"
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l newer-than -l since -d 'Only records at most this old' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l ttl-below -d 'Only records with less than this left' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l ttl-above -d 'Only records with more than this left, those without expiry included' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l owner -d 'Only locks whose owner matches this glob' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l fingerprint -d 'Only records whose fingerprint of the payload matches this glob' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l match -d 'Only idempotency keys that match this glob (`*`, `?`, `[a-z]`, `\\` escapes)' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l key-file -d 'File with idempotency keys or Redis keys (`-`: stdin), one a line' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l max -d 'Refuse when more records are chosen than this, and never remove more' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l max-percent -d 'Refuse when more than this part of the schemas\' records is chosen, and never remove more' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l rate -d 'Remove at most so many records a second, e.g. 500/s' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -s o -l output -d 'How to show what was found and done; both kinds of JSON are one object, jsonl in one line' -r -f -a "table\t'For people'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l scan-count -d 'Redis keys that a SCAN looks at: fewer stall other clients less, more cost fewer round trips [default: 500, and up to 2000 where the server is far away]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l overdue -d 'Report locks held longer than this as `overdue`' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l confirm -d 'Name of the protected context, or of a purge\'s server: for scripts, what a person would have to type' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l reason -d 'Why, for the audit log' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l wait-replicas -d 'After each batch of changes wait until this many replicas have it; exit status 3 when they have not' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l wait-timeout -d 'How long to wait for them [default: 1s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l backup -d 'Where to back up what is removed [default: a new file in $XDG_STATE_HOME/idemctl/backups]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l schema -d 'Schemas to work on; `idemctl schema list` names them [default: all, or the context\'s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l schema-dir -d 'Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l prefix -d 'Prefix of this deployment\'s keys, of the one schema that is named; `idemctl schema show NAME` says where it stands' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l lock-ttl -d 'Lock TTL of this deployment for the one schema that is named: what is stated may select for a change' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l result-ttl -d 'Result TTL of this deployment for the one schema that is named' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l no-expiry -d 'Only records without expiry'
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -s 0 -l null -d 'Keys in the file, or on stdin, end with NUL instead of a newline'
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l all -d 'All records that are completed, where nothing else chooses'
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -s y -l yes -d 'Go ahead without asking'
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l dry-run -d 'Show what would be done and change nothing'
complete -c idemctl -n "__fish_idemctl_using_subcommand purge" -l no-backup -d 'Remove without a backup'
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l only -d 'Only this idempotency key or Redis key; can be given more than once' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -s o -l output -d 'How to show what became of each Redis key' -r -f -a "table\t'For people'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l confirm -d 'Name of the protected context, or of a purge\'s server: for scripts, what a person would have to type' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l reason -d 'Why, for the audit log' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l wait-replicas -d 'After each batch of changes wait until this many replicas have it; exit status 3 when they have not' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l wait-timeout -d 'How long to wait for them [default: 1s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l elsewhere -d 'Restore to another server, service, cluster or database than the backup was taken from'
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l replace-locked -d 'Restore a result although a lock stands beside it: the lock stays, and requests get this result until the lock\'s holder overwrites it'
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l skip-damaged -d 'Leave out damaged lines that have whole ones behind them, too: what a damaged line may have taken back comes back'
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -s y -l yes -d 'Go ahead without asking'
complete -c idemctl -n "__fish_idemctl_using_subcommand restore" -l dry-run -d 'Show what would be done and change nothing'
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l only -d 'Only changes to this idempotency key or Redis key' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l since -d 'Only changes of this last while' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l limit -d 'How many of the newest changes to show' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -s o -l output -d 'How to show the changes' -r -f -a "table\t'For people'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand audit" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -s o -l output -d 'How to show the runs' -r -f -a "table\t'For people'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l concurrency -d 'Workers, each on a connection of its own, at most 1000' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l rounds -d 'Rounds, each on a fresh key' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l strategy -d 'How the workers go about it [default: schema,check-then-act]' -r -f -a "schema\t'The schema\'s own steps'
check-then-act\t'GET, and SET when nothing is there'
set-nx\t'SET NX, and GET when that fails'"
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l think-time -d 'Longest pause between the calls of a step, spread over the workers: widens the window between check and act' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l fail-every -d 'Let the winner\'s handler fail in every Nth round, so that it releases; 0 is never (set-nx: 4 then)' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l schema -d 'Schemas to work on; `idemctl schema list` names them [default: all, or the context\'s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l schema-dir -d 'Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l prefix -d 'Prefix of this deployment\'s keys, of the one schema that is named; `idemctl schema show NAME` says where it stands' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l lock-ttl -d 'Lock TTL of this deployment for the one schema that is named: what is stated may select for a change' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l result-ttl -d 'Result TTL of this deployment for the one schema that is named' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand race" -l overlap -d 'Let a winner complete at once, while others still begin (set-nx always does)'
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l expect -d 'Compare with a matrix that `--output json` wrote: only differences count' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l repeat -d 'How often what depends on chance is played' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l seed -d 'What chance there is comes from this number' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -s o -l output -d 'How to show what was played' -r -f -a "table\t'For people'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l schema -d 'Schemas to work on; `idemctl schema list` names them [default: all, or the context\'s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l schema-dir -d 'Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l prefix -d 'Prefix of this deployment\'s keys, of the one schema that is named; `idemctl schema show NAME` says where it stands' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l lock-ttl -d 'Lock TTL of this deployment for the one schema that is named: what is stated may select for a change' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l result-ttl -d 'Result TTL of this deployment for the one schema that is named' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l all -d 'Play every scenario'
complete -c idemctl -n "__fish_idemctl_using_subcommand simulate" -l timeline -d 'Show each cell as a sequence: when, who, what, Redis\'s reply, what the client saw'
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l seed -d 'Fill it with N records of each schema in mixed states, healthy and sick; the same ones every time' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l schema -d 'Schemas to work on; `idemctl schema list` names them [default: all, or the context\'s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l schema-dir -d 'Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l prefix -d 'Prefix of this deployment\'s keys, of the one schema that is named; `idemctl schema show NAME` says where it stands' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l lock-ttl -d 'Lock TTL of this deployment for the one schema that is named: what is stated may select for a change' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l result-ttl -d 'Result TTL of this deployment for the one schema that is named' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand sandbox" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -f -a "list" -d 'List the schemas idemctl knows'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -f -a "show" -d 'Show a schema: Redis keys, values, TTLs, and what each reply to each step means'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and not __fish_seen_subcommand_from list show check" -f -a "check" -d 'Check a schema of your own, with its scripts'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -s o -l output -d 'How to show them' -r -f -a "table\t'For people'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l schema-dir -d 'Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from list" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l script -d 'Print this script as it is sent, and nothing else' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -s o -l output -d 'How to show it' -r -f -a "table\t'For people'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l schema-dir -d 'Folder with schemas of your own [default: $XDG_CONFIG_HOME/idemctl/schemas] [env: IDEMCTL_SCHEMA_DIR]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from show" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand schema; and __fish_seen_subcommand_from check" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -f -a "list" -d 'List the contexts; the one that is used is marked'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -f -a "show" -d 'Show what the file says of a context'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and not __fish_seen_subcommand_from list show use" -f -a "use" -d 'Make a context the default one; the rest of the file stays as it is'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -s o -l output -d 'How to show them' -r -f -a "table\t'For people'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from list" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -s o -l output -d 'How to show it' -r -f -a "table\t'For people'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from show" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand context; and __fish_seen_subcommand_from use" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and not __fish_seen_subcommand_from show" -f -a "show" -d 'Show every effective setting'
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -s o -l output -d 'How to show them' -r -f -a "table\t'For people'
json\t'One JSON document'
jsonl\t'One JSON object a line'"
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l origin -d 'Say where each comes from: a flag, a variable, a line of the config file, or the default'
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand config; and __fish_seen_subcommand_from show" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand completions" -l help -d 'Print help'
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -s u -l url -d 'Server URL, e.g. redis://USER:PASSWORD@HOST:6379/0 or unix:///PATH [env: IDEMCTL_URL, REDIS_URL]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -s h -l host -d 'Server host [default: 127.0.0.1]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -s p -l port -d 'Server port [default: 6379]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -s s -l socket -d 'Unix socket of the server' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l sentinel -d 'Sentinels that know the service\'s master' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l master-name -d 'Name of the service at the Sentinels' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l sentinel-user -d 'ACL user at the Sentinels, which have a log-in of their own; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l sentinel-pass-file -d 'File with the password at the Sentinels in its one line [env: IDEMCTL_SENTINEL_AUTH]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -s n -l db -d 'Database number [default: 0]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l user -d 'ACL user; needs a password' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -s a -l pass -d 'Password; in the process list, where --askpass, --pass-file and the variable keep it out [env: REDISCLI_AUTH]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l pass-file -d 'File with the password in its one line (`-`: the first line of stdin)' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l context -d 'Context of the config file [env: IDEMCTL_CONTEXT]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l config -d 'Config file [default: $XDG_CONFIG_HOME/idemctl/config.toml] [env: IDEMCTL_CONFIG]' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l timeout -d 'How long each reply may take [default: 5s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l connect-timeout -d 'How long connecting may take, and the TLS handshake again [default: 2s]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l cacert -d 'Certificates of the issuers to trust, PEM, in place of the system\'s' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l cacertdir -d 'Folder with such files' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l cert -d 'The client\'s certificate, PEM, for a server that wants one; with --key' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l key -d 'The client\'s private key, PEM' -r -F
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l sni -d 'Name to ask for and to find in the server\'s certificate [default: the host]' -r
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l color -d 'When to colour: auto heeds NO_COLOR and whether stdout is a terminal' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -s c -l cluster -d 'Refuse to work on a server that is no cluster\'s node; clusters are recognised without it'
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l askpass -d 'Ask for the password'
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l no-auth-warning -d 'Do not warn of a password on the command line'
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l sandbox -d 'Start a private throw-away server and work on it'
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l tls -d 'Speak TLS (1.2 or 1.3), as a rediss:// URL does'
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l insecure -d 'Do not check the server\'s certificate: whoever is on the way can read and change everything'
complete -c idemctl -n "__fish_idemctl_using_subcommand man" -l help -d 'Print help'
