// The protocol between the probe and its caller, besides wire.h.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_PROBE_PROTOCOL_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_PROBE_PROTOCOL_H_

namespace berth::discovery {

inline constexpr char kFromFlag[] = "--from";
inline constexpr char kTopologyFlag[] = "--topology";
inline constexpr char kNvmlFlag[] = "--nvml";
// Watch mode: for each byte on standard input, writes a GpuReport, preceded by its length in eight
// bytes, until standard input ends. "" = libnvidia-ml.so.1. Length 0: a message follows, then the
// exit with a code as below.
inline constexpr char kWatchFlag[] = "--watch";

// Divide mode: --divide UUID [--nvml LIBRARY] --part 3g.40gb@0 ... divides a GPU. Standard output
// stays empty unless it fails.
inline constexpr char kDivideFlag[] = "--divide";
inline constexpr char kPartFlag[] = "--part";

// Exit 0: standard output has the machine. This plus an absl::StatusCode: it has the message.
inline constexpr int kFirstErrorExit = 100;
inline constexpr int kLastErrorExit = 116;

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_PROBE_PROTOCOL_H_
