// Scripts with which each shell calls `berth __complete WORD...` (completion.h).
#ifndef BERTH_CLIENTS_CLI_COMPLETION_SCRIPTS_H_
#define BERTH_CLIENTS_CLI_COMPLETION_SCRIPTS_H_

namespace berth {

// bash splits words at "=" and ":". The script joins them again, and strips all but the last part
// from each completion.
inline constexpr char kBashCompletion[] =
    R"sh(# bash completion for berth:  source <(berth completion bash)
_berth() {
  local word glue="" at line current=""
  local -a words=()
  for ((at = 1; at <= COMP_CWORD; ++at)); do
    word=${COMP_WORDS[at]}
    if [[ ${#words[@]} -gt 0 && ( -n $glue || $word == [=:]* ) ]]; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
    glue=""
    [[ $word == *[=:] ]] && glue=1
  done
  [[ ${#words[@]} -gt 0 ]] && current=${words[-1]}
  local broken=${current%"${current##*[=:]}"}
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      compopt -o default 2>/dev/null
      continue
    fi
    line=${line%%$'\t'*}
    COMPREPLY+=("${line#"$broken"}")
  done < <("${COMP_WORDS[0]/#\~/$HOME}" __complete "${words[@]}" 2>/dev/null)
}
complete -F _berth berth
)sh";

inline constexpr char kZshCompletion[] =
    R"sh(#compdef berth
# zsh completion for berth:  source <(berth completion zsh)  or as _berth in a folder of $fpath
_berth() {
  local line files=""
  local -a lines found
  lines=("${(@f)$(${~words[1]} __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
  for line in "${lines[@]}"; do
    if [[ $line == :files ]]; then
      files=1
    elif [[ $line == *$'\t'* ]]; then
      found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    elif [[ -n $line ]]; then
      found+=("${line//:/\\:}")
    fi
  done
  (( ${#found} )) && _describe berth found
  [[ -n $files ]] && _files
  return 0
}
if [[ $funcstack[1] == _berth ]]; then
  _berth "$@"
else
  compdef _berth berth
fi
)sh";

inline constexpr char kFishCompletion[] =
    R"sh(# fish completion for berth:  berth completion fish | source
function __berth_complete
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    set -l current (commandline -ct)
    for line in ($program __complete $words "$current" 2>/dev/null)
        if test "$line" = ":files"
            __fish_complete_path "$current"
        else
            echo $line
        end
    end
end
complete -c berth -f -a '(__berth_complete)'
)sh";

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_COMPLETION_SCRIPTS_H_
