// Names of the resources of the server, for completion.
#ifndef BERTH_CLIENTS_CLI_COMPLETION_NAMES_H_
#define BERTH_CLIENTS_CLI_COMPLETION_NAMES_H_

#include <string>
#include <vector>

#include "clients/cli/session.h"

namespace berth {

// Names of a noun ("job", "queue", "node", "hypernode") that begin with `prefix`: at most
// kMaxCompletedNames, received within kNamesTimeout. Jobs are newest first; with `active_only`,
// jobs that have ended are left out.
std::vector<std::string> NamesOf(Session& session, const std::string& noun,
                                 const std::string& prefix, bool active_only);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_COMPLETION_NAMES_H_
