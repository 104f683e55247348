#include "clients/cli/topology/fabric.h"

#include <algorithm>

namespace berth {

void Fabric::AddHost(const std::string& host, const std::string& leaf_switch, int64_t gbps) {
  Switch& leaf = switches_[leaf_switch];
  leaf.has_hosts = true;
  const bool is_new = hosts_[host].switches.insert(leaf_switch).second;
  if (is_new && gbps > 0) ++leaf.host_speeds[gbps];
}

void Fabric::AddCable(const std::string& one_switch, const std::string& other_switch,
                      int64_t gbps) {
  if (one_switch == other_switch) return;
  for (const auto& [from, to] :
       {std::make_pair(one_switch, other_switch), std::make_pair(other_switch, one_switch)}) {
    Switch& end = switches_[from];
    end.neighbours.insert(to);
    int64_t& speed = end.cables[to];
    speed = std::max(speed, gbps);
  }
}

void Fabric::AddForeignHost(const std::string& at_switch) { ++switches_[at_switch].foreign_hosts; }

void Fabric::SetTitle(const std::string& id, const std::string& title) {
  switches_[id].title = title;
}

}  // namespace berth
