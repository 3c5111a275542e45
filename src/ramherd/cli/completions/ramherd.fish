# Completion of ramherd for fish: ramherd completion fish | source
function __ramherd_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l lines (command ramherd __complete $words[2..-1] 2>/dev/null)
    switch "$lines[1]"
        case files
            __fish_complete_path (commandline -ct)
        case directories
            __fish_complete_directories (commandline -ct)
        case programs
            __fish_complete_command
        case words
            printf '%s\n' $lines[2..-1]
    end
end
complete -c ramherd -f -a '(__ramherd_complete)'
