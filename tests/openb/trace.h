// The openb GPU cluster and its request lists, as in the measurements of FGD (USENIX ATC'23): GPU
// nodes only, empty at start; requests arrive one by one and never leave.
#ifndef BERTH_TESTS_OPENB_TRACE_H_
#define BERTH_TESTS_OPENB_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/sharing/node_room.h"
#include "core/sharing/request_mix.h"
#include "support/random.h"

namespace berth::openb {

struct Node {
  NodeRoom room;
};

struct Pod {
  Request request;
};

struct Trace {
  std::vector<std::string> models;
  std::vector<Node> nodes;  // in the file's order
  std::vector<Pod> pods;    // by name
  int64_t devices = 0;
};

inline constexpr const char* kLists[] = {"default", "cpu100", "gpushare40", "gpuspec10",
                                         "multigpu20"};

// Reads openb_node_list_gpu_node.csv.gz and openb_pod_list_LIST.csv.gz from the folder. Ends the
// program, naming the file, if one cannot be read.
Trace Load(const std::string& folder, const std::string& list);

// The list's pods in random order, then pods drawn from it at random until the next would exceed
// 130 % of all devices.
std::vector<Pod> Arrivals(const Trace& trace, uint64_t seed);

// A random sample of the list: what an operator may know of recent requests.
std::vector<Request> Sample(const Trace& trace, size_t count, uint64_t seed);

}  // namespace berth::openb

#endif  // BERTH_TESTS_OPENB_TRACE_H_
