
# bash parts words at `=`, `:` and `@` (COMP_WORDBREAKS). The parts are joined before idemctl is asked, and the answers lose what
# the line has already.
_idemctl() {
    local COMP_WORDS=("${COMP_WORDS[@]}") COMP_CWORD=$COMP_CWORD
    local line=$COMP_LINE joined=() part='' before='' gap cut i last=0
    for ((i = 0; i <= COMP_CWORD; i++)); do
        before=$part
        part=${COMP_WORDS[i]}
        gap=${line%%[^[:space:]]*}
        line=${line#"$gap"}
        line=${line#"$part"}
        # The last word counts up to the cursor. An `@` before it is in $2, although it is a word of its own.
        if ((i == COMP_CWORD)) && [[ -n ${part//[=:@]/} ]]; then
            if [[ $part == @* ]]; then part=$2; else part=${2#@}; fi
        fi
        if [[ $i -gt 0 && -z $gap && ( -z ${part//[=:@]/} || -z ${before//[=:@]/} ) ]]; then
            joined[last]+=$part
        else
            last=${#joined[@]}
            joined[last]=$part
        fi
    done
    if [[ -z ${part//[=:@]/} ]]; then
        part=''
    fi
    COMP_WORDS=("${joined[@]}")
    COMP_CWORD=$last
    cut=${joined[last]%"$part"}
    if [[ $2 == @* ]]; then
        cut=${cut%@}
    fi
    _clap_complete_idemctl "$1" "${joined[last]}" "$3"
    if [[ -z ${COMPREPLY-} ]]; then
        return
    fi
    if [[ -e ${COMPREPLY[0]} ]]; then
        # Names of files with spaces are quoted.
        compopt -o filenames 2> /dev/null
    fi
    if [[ -n $cut ]]; then
        COMPREPLY=("${COMPREPLY[@]#"$cut"}")
    fi
}
if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -o nospace -o bashdefault -o nosort -F _idemctl idemctl
else
    complete -o nospace -o bashdefault -F _idemctl idemctl
fi
