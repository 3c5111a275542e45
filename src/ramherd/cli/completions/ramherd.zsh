#compdef ramherd
# Completion of ramherd for zsh: eval "$(ramherd completion zsh)", or this file as _ramherd in $fpath
_ramherd() {
    local -a lines described
    local line
    lines=("${(@f)$(command ramherd __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    case $lines[1] in
        files) _files ;;
        directories) _files -/ ;;
        programs) _command_names -e ;;
        words)
            for line in "${(@)lines[2,-1]}"; do
                described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
            done
            _describe -V ramherd described
            ;;
    esac
}
if [[ ${funcstack[1]-} == _ramherd ]]; then
    _ramherd "$@"
else
    compdef _ramherd ramherd
fi
