
_clap_complete_idemctl() {
    local IFS=$'\013'
    local _CLAP_COMPLETE_INDEX=${COMP_CWORD}
    local _CLAP_COMPLETE_COMP_TYPE=${COMP_TYPE}
    if compopt +o nospace 2> /dev/null; then
        local _CLAP_COMPLETE_SPACE=false
    else
        local _CLAP_COMPLETE_SPACE=true
    fi
    local words=("${COMP_WORDS[@]}")
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        words[COMP_CWORD]="$2"
    fi
    COMPREPLY=( $( \
        _CLAP_IFS="$IFS" \
        _CLAP_COMPLETE_INDEX="$_CLAP_COMPLETE_INDEX" \
        _CLAP_COMPLETE_COMP_TYPE="$_CLAP_COMPLETE_COMP_TYPE" \
        _CLAP_COMPLETE_SPACE="$_CLAP_COMPLETE_SPACE" \
        COMPLETE="bash" \
        "idemctl" -- "${words[@]}" \
    ) )
    if [[ $? != 0 ]]; then
        unset COMPREPLY
    elif [[ $_CLAP_COMPLETE_SPACE == false ]] && [[ "${COMPREPLY-}" =~ [=/:]$ ]]; then
        compopt -o nospace
    fi
}
if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -o nospace -o bashdefault -o nosort -F _clap_complete_idemctl idemctl
else
    complete -o nospace -o bashdefault -F _clap_complete_idemctl idemctl
fi


# bash parts `--option=value` at `=`. The words are joined before idemctl is asked, and the answer is parted again.
_idemctl() {
    local cut='' last=$2 COMP_WORDS=("${COMP_WORDS[@]}") COMP_CWORD=$COMP_CWORD
    if [[ $last == '=' ]]; then
        last=''
    elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == '=' ]]; then
        ((COMP_CWORD--))
    fi
    if [[ ${COMP_WORDS[COMP_CWORD]} == '=' && $COMP_CWORD -ge 2 ]]; then
        ((COMP_CWORD--))
        cut="${COMP_WORDS[COMP_CWORD]}="
        last=$cut$last
        COMP_WORDS=("${COMP_WORDS[@]:0:COMP_CWORD}" "$last")
    fi
    _clap_complete_idemctl "$1" "$last" "$3"
    [[ -z $cut || -z ${COMPREPLY-} ]] || COMPREPLY=("${COMPREPLY[@]#"$cut"}")
}
complete -o nospace -o bashdefault -F _idemctl idemctl
