// What both sides of the probe agree on, besides wire.h.
#ifndef BERTH_CLIENTS_DISCOVERY_PROBE_PROTOCOL_H_
#define BERTH_CLIENTS_DISCOVERY_PROBE_PROTOCOL_H_

namespace berth::discovery {

inline constexpr char kFromFlag[] = "--from";
inline constexpr char kTopologyFlag[] = "--topology";
inline constexpr char kNvmlFlag[] = "--nvml";
// Instead of looking once: for each byte on standard input a GpuReport, behind its length in eight
// bytes, until standard input ends. "" = libnvidia-ml.so.1. Length 0: a message follows, and the
// end with a code as below.
inline constexpr char kWatchFlag[] = "--watch";

// Instead: --divide UUID [--nvml LIBRARY] --part 3g.40gb@0 ... divides a GPU anew. Nothing is on
// standard output then, unless it fails.
inline constexpr char kDivideFlag[] = "--divide";
inline constexpr char kPartFlag[] = "--part";

// Exit 0: the machine is on standard output. This plus an absl::StatusCode: the message is.
inline constexpr int kFirstErrorExit = 100;
inline constexpr int kLastErrorExit = 116;

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_DISCOVERY_PROBE_PROTOCOL_H_
