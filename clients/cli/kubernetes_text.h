// Variables in the commands and environments of Kubernetes' containers.
#ifndef BERTH_CLIENTS_CLI_KUBERNETES_TEXT_H_
#define BERTH_CLIENTS_CLI_KUBERNETES_TEXT_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace berth {

// The variables that a text may refer to, and how a command of Berth does so:
// "VC_TASK_INDEX" -> "${BERTH_GROUP_INDEX}".
using Variables = std::map<std::string, std::string>;

// A word of a command. Kubernetes replaces $(NAME) and takes $$ for $; Berth replaces $NAME and
// ${NAME}, and takes $$NAME for $NAME. What is plain text to Kubernetes stays plain text, such as a
// name that is not among `variables`.
//   $(JOB_COMPLETION_INDEX) $HOME $(date) $$(A)  ->  ${BERTH_ARRAY_INDEX} $$HOME $(date) $(A)
std::string CommandWord(absl::string_view text, const Variables& variables);

// True if Kubernetes replaces something in the text: it has $(NAME) of a variable, not $$(NAME).
bool RefersToVariable(absl::string_view text, const Variables& variables);

// The value of a variable in which nothing is replaced: $$ is $.
std::string PlainValue(absl::string_view text);

// The next name of a variable in `text` from `*position`, which is moved behind it; "" at the end.
absl::string_view NextName(absl::string_view text, size_t* position);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_KUBERNETES_TEXT_H_
