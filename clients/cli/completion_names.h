// Names of what the server has, for completion.
#ifndef BERTH_CLIENTS_CLI_COMPLETION_NAMES_H_
#define BERTH_CLIENTS_CLI_COMPLETION_NAMES_H_

#include <string>
#include <vector>

#include "clients/cli/session.h"

namespace berth {

// Names of a noun ("job", "queue", "node", "hypernode") that begin with `prefix`: at most
// kMaxCompletedNames of them, and those that came within kNamesTimeout. Of jobs the newest first,
// and with `active_only` those that have not ended.
std::vector<std::string> NamesOf(Session& session, const std::string& noun,
                                 const std::string& prefix, bool active_only);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_COMPLETION_NAMES_H_
