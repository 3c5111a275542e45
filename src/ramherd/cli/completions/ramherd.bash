# Completion of ramherd for bash: eval "$(ramherd completion bash)"
_ramherd() {
    local kind= line cur=${COMP_WORDS[COMP_CWORD]}
    [[ $cur == "=" ]] && cur=
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ -z $kind ]]; then
            kind=$line
        else
            COMPREPLY+=("$(printf %q "${line%%$'\t'*}")")
        fi
    done < <(command ramherd __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    local IFS=$'\n'
    case $kind in
        files) compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur")) ;;
        directories) compopt -o filenames; COMPREPLY=($(compgen -d -- "$cur")) ;;
        programs) COMPREPLY=($(compgen -c -- "$cur")) ;;
    esac
}
complete -F _ramherd ramherd
