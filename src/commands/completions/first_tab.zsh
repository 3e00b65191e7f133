# Loaded by the first TAB, from a folder of $fpath, the file is the function that TAB asks.
if [[ ${funcstack[1]} == _idemctl ]]; then
    _clap_dynamic_completer_idemctl "$@"
else
    compdef _clap_dynamic_completer_idemctl idemctl
fi
