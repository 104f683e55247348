// Options of a simulation.
#ifndef BERTH_TESTS_SIMULATION_OPTIONS_H_
#define BERTH_TESTS_SIMULATION_OPTIONS_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace berth::simulation {

enum class Fault : uint8_t {
  kLoss,       // packets are lost: connections break, or wait for a resend
  kReplay,     // earlier messages are repeated
  kDelay,      // messages take seconds
  kClog,       // a link stalls for a while, and then delivers everything
  kPartition,  // nodes are cut off, in one direction or both, alone or many together
  kServer,     // berthd dies and restarts, and loses what it was writing
  kAgent,      // agents die and restart; their tasks continue
  kMachine,    // nodes lose power and come back, some with an empty disk
  kPause,      // processes and whole machines freeze
  kClock,      // wall clocks jump
  kDisk,       // disks are full, or fail to sync
  kLie,        // agents send false reports, and have other devices than they said
  kRefuse,     // nodes fail to prepare tasks
  kRestore,    // berthd is restored from a backup, or starts with a new store
};
inline constexpr std::array<absl::string_view, 14> kFaultNames = {
    "loss",    "replay", "delay", "clog", "partition", "server", "agent",
    "machine", "pause",  "clock", "disk", "lie",       "refuse", "restore"};

using FaultSet = uint32_t;
constexpr FaultSet Only(Fault fault) { return FaultSet{1} << static_cast<int>(fault); }
inline constexpr FaultSet kAllFaults = (FaultSet{1} << kFaultNames.size()) - 1;

struct Options {
  uint64_t seed = 1;
  double hours = 24;
  FaultSet faults = kAllFaults;
  int max_nodes = 12;
  int64_t max_jobs = 1'000'000;  // submitted in total
  bool print = false;            // prints every event

  bool Has(Fault fault) const { return (faults & Only(fault)) != 0; }
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_OPTIONS_H_
