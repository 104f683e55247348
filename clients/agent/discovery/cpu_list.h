// Lists of CPUs as the kernel writes them: "0-7,16".
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_CPU_LIST_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_CPU_LIST_H_

#include <hwloc.h>

#include <string>

namespace berth::discovery {

// "" for an empty or infinite set, or no set.
std::string CpuList(hwloc_const_cpuset_t set);

// Of a mask: "00000000,000000ff" (the last word holds CPUs 0 to 31) is "0-7". "" for anything else.
std::string CpuList(const std::string& mask);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_CPU_LIST_H_
