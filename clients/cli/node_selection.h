// Selects the nodes of a command by names, name patterns and labels.
//
//   berth node drain n1 'n[4-7]'        these nodes
//   berth node drain --label rack=r1    all nodes of the rack
//   berth node drain 'n*' -l rack=r1    nodes that match both
#ifndef BERTH_CLIENTS_CLI_NODE_SELECTION_H_
#define BERTH_CLIENTS_CLI_NODE_SELECTION_H_

#include <functional>
#include <string>

#include "clients/cli/by_name.h"

namespace berth {

// Adds "berth node VERB [NAME...] [--label KEY=VALUE] [--yes]", a verb that changes nodes. `run`
// gets the names.
CLI::App* AddSelectingNodes(CLI::App& noun, Session& session, const std::string& verb,
                            const std::string& description,
                            std::function<ExitCode(Session&, const Names&)> run);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_NODE_SELECTION_H_
