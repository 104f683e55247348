// Selects the hosts of a fabric that take part, and counts the others.
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_HOSTS_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_HOSTS_H_

#include <set>
#include <string>
#include <vector>

#include "clients/cli/topology/host_names.h"
#include "clients/cli/topology/source.h"

namespace berth {

class HostFilter {
 public:
  explicit HostFilter(const ImportInput& input);

  // Whether a port of this owner takes part; counts those that do not.
  bool Counts(const AdapterOwner& owner);
  // Whether an owner that does not count is a foreign host (Fabric::AddForeignHost).
  bool IsForeign(const AdapterOwner& owner) const;
  // `what`: "adapter" or "port", the unit of the calls of Counts().
  void AddWarnings(const std::string& what, std::vector<std::string>* warnings) const;

 private:
  const bool known_only_;
  std::set<std::string> known_;
  size_t seen_ = 0;
  size_t unnamed_ = 0, aggregation_ = 0, managers_ = 0;
  std::set<std::string> unknown_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_HOSTS_H_
