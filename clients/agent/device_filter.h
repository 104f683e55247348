// Bars device files to the processes of a control group of version 2, which has no file for that:
// by a small program that the kernel runs before each opening of a device.
//
//   denied 195:0  ->  is it a character device?  no: allowed
//                     is its number 195:0?       yes: refused (EPERM)
//                                                no: allowed
//
// See Documentation/admin-guide/cgroup-v2.rst, "Device controller", and bpf(2). The program goes
// with its group.
#ifndef BERTH_CLIENTS_AGENT_DEVICE_FILTER_H_
#define BERTH_CLIENTS_AGENT_DEVICE_FILTER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace berth {

inline constexpr size_t kMaxDeniedDevices = 1000;

// Refuses these character devices, "195:3", to all in the group with that directory, and below.
// INVALID_ARGUMENT for what is no such number, or too many; else the kernel's refusal: it has no
// such programs, or this process may not load them (CAP_BPF or CAP_SYS_ADMIN, and CAP_NET_ADMIN).
absl::Status BarDevices(const std::string& group, const std::vector<std::string>& denied);

// Whether BarDevices would work there; leaves nothing behind.
absl::Status TryBarDevices(const std::string& group);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DEVICE_FILTER_H_
