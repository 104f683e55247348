// Expands references to variables in a task's command.
//
//   $NAME and ${NAME} become the variable's value; unknown names stay unchanged. $$NAME and
//   $${NAME} become $NAME and ${NAME}.
//
// The process that becomes the command expands them just before exec: until then no command line,
// file or log of the agent and the supervisor contains a value.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_EXPAND_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_EXPAND_H_

#include <map>
#include <string>
#include <vector>

namespace berth {

std::string ExpandVariables(const std::string& text,
                            const std::map<std::string, std::string>& environment);

// Expands all arguments of a command; `environment` has "NAME=value". The script of a shell (`sh -c
// SCRIPT`, also with other options) keeps its references: the shell expands them from the same
// environment, so that no value appears on its command line, which `ps` shows to everybody. In a
// script only $$NAME is replaced, by $NAME.
std::vector<std::string> ExpandCommand(const std::vector<std::string>& command,
                                       const std::vector<std::string>& environment);

// The index of the argument that is a shell script; 0 if the command is not like `sh -c SCRIPT`,
// even after programs that only start another one: `env A=b nice -n 5 sh -c SCRIPT`.
size_t ShellScriptAt(const std::vector<std::string>& command);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_EXPAND_H_
