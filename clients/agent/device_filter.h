// Blocks device files for the processes of a version 2 control group. Version 2 has no file for
// that; instead the kernel runs a small program before each open of a device.
//
//   denied 195:0  ->  is it a character device?  no: allowed
//                     is its number 195:0?       yes: refused (EPERM)
//                                                no: allowed
//
// See Documentation/admin-guide/cgroup-v2.rst, "Device controller", and bpf(2). The kernel removes
// the program with its group.
#ifndef BERTH_CLIENTS_AGENT_DEVICE_FILTER_H_
#define BERTH_CLIENTS_AGENT_DEVICE_FILTER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace berth {

inline constexpr size_t kMaxDeniedDevices = 1000;

// Denies these character devices, "195:3", to all processes in the group with that directory and
// its subgroups. INVALID_ARGUMENT for an invalid number, or too many; otherwise the kernel's error:
// it lacks such programs, or this process may not load them (CAP_BPF or CAP_SYS_ADMIN, and
// CAP_NET_ADMIN).
absl::Status DenyAccess(const std::string& group, const std::vector<std::string>& denied);

// Whether DenyAccess would work there; leaves no trace.
absl::Status TryDenyAccess(const std::string& group);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DEVICE_FILTER_H_
