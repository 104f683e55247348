// Ports on the command line of berth port-forward: "8888", "9000:8888", ":8888".
#ifndef BERTH_CLIENTS_CLI_PORT_PAIR_H_
#define BERTH_CLIENTS_CLI_PORT_PAIR_H_

#include <string>

#include "absl/status/statusor.h"

namespace berth {

struct PortPair {
  int local = 0;  // 0: any free one
  int remote = 0;
};

// [LOCAL:]REMOTE; without LOCAL the same port.
absl::StatusOr<PortPair> ParsePortPair(const std::string& text);
// Whether it has only digits and colons; otherwise it is the name of a task.
bool LooksLikePorts(const std::string& text);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_PORT_PAIR_H_
