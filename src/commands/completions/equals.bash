
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
