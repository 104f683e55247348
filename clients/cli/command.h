// Declares commands. Each is one leaf of the CLI11 tree, with a function that runs it.
#ifndef BERTH_CLIENTS_CLI_COMMAND_H_
#define BERTH_CLIENTS_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "clients/cli/output.h"
#include "clients/cli/session.h"

namespace berth {

// Adds the whole tree. `session` must outlive `app`; `command` is what follows "--".
void AddAllCommands(CLI::App& app, Session& session, const std::vector<std::string>& command);

// The nouns.
void AddJobCommands(CLI::App& app, Session& session);
void AddQueueCommands(CLI::App& app, Session& session);
void AddPriorityClassCommands(CLI::App& app, Session& session);
void AddNodeCommands(CLI::App& app, Session& session);
void AddMemberCommands(CLI::App& cluster, Session& session);  // servers of the cluster
void AddJoinTokenCommands(CLI::App& node, Session& session);  // node token
void AddHyperNodeCommands(CLI::App& app, Session& session);   // and topology
void AddClusterCommands(CLI::App& app, Session& session);
void AddAccessCommands(CLI::App& app, Session& session);  // and whoami
void AddLoginCommands(CLI::App& app, Session& session);   // and logout
void AddAuditCommand(CLI::App& app, Session& session);
void AddUsageCommand(CLI::App& app, Session& session);
void AddClusterUsage(CLI::App& cluster, Session& session);  // cluster usage
void AddMigrateCommand(CLI::App& app, Session& session);
// apply and submit; `command` is what follows "--".
void AddSubmitCommands(CLI::App& app, Session& session, const std::vector<std::string>& command);

// exec; `command` likewise.
void AddExecCommand(CLI::App& app, Session& session, const std::vector<std::string>& command);

// run; `command` likewise.
void AddRunCommand(CLI::App& app, Session& session, const std::vector<std::string>& command);
void AddAttachCommand(CLI::App& app, Session& session);
void AddPortForwardCommand(CLI::App& app, Session& session);
void AddCopyCommand(CLI::App& app, Session& session);  // cp

// --detach-keys of attach and run; `keys` lives as long as `command`.
CLI::Option* AddDetachKeys(CLI::App& command, std::string* keys);

CLI::App* AddNoun(CLI::App& app, const std::string& name, const std::string& description);
CLI::App* AddCommand(CLI::App& noun, Session& session, const std::string& name,
                     const std::string& description, Action action);

// Validators of option values, and functions that read them. The readers check nothing: the
// validators ran before.
extern const CLI::Validator kIsDuration;  // "1h30m"
extern const CLI::Validator kIsKeyValue;  // "key=value"
absl::Duration DurationFrom(const std::string& text);
std::pair<std::string, std::string> KeyValueFrom(const std::string& text);

// Prints the message for -o json and yaml. False for the other formats.
bool PrintMessage(Session& session, const google::protobuf::Message& message);

// Runs `each` for every name, prints every error, and returns the first code that is not kOk.
ExitCode ForEachName(Session& session, const std::vector<std::string>& names,
                     const std::function<absl::Status(const std::string&)>& each);

// Prints a list again whenever something of `subject` changes, at most once a second, until
// interrupted or refused by the server. `show` fetches and prints the list once.
ExitCode WatchList(Session& session, const v1::WatchRequest& subject,
                   const std::function<absl::Status()>& show);

// Prints the result of a change: "job/x cancelled" for people, the resource for -o json and yaml.
template <class T>
void PrintChanged(Session& session, const T& resource, const std::string& verb,
                  const Shape<T>& shape) {
  const Format format = session.options.format;
  if (format == Format::kTable || format == Format::kWide) {
    session.out() << shape.noun << "/" << resource.name() << " " << verb << "\n";
  } else {
    Print(session, std::vector<T>{resource}, true, shape);
  }
}

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_COMMAND_H_
