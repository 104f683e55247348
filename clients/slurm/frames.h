// Messages between srun and the part of its step on a node, over a pipe or an Exec.
#ifndef BERTH_CLIENTS_SLURM_FRAMES_H_
#define BERTH_CLIENTS_SLURM_FRAMES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace berth {

enum class FrameKind : char {
  // To the node.
  kBegin = 'b',   // SlurmStep, first
  kInput = 'i',   // of standard input
  kEnd = 'e',     // of standard input
  kSignal = 's',  // its number, for every process of the step
  // From the node.
  kOutput = 'o',   // rank, then bytes
  kError = 'r',    // rank, then bytes of standard error
  kExit = 'x',     // rank, then the status of wait(2)
  kTaken = 'k',    // so many bytes of input were read
  kTrouble = 't',  // the step could not begin: text
};

struct Frame {
  FrameKind kind = FrameKind::kEnd;
  std::string data;
};

// Bytes of input on their way to a node that were not read yet.
inline constexpr size_t kInputWindow = size_t{256} << 10;
inline constexpr size_t kMostFrameBytes = size_t{8} << 20;

std::string EncodeFrame(FrameKind kind, absl::string_view data);
std::string EncodeNumber(int32_t number);
// The number at the beginning, which is taken away; 0 if there is none.
int32_t TakeNumber(std::string* data);

// Puts frames together from pieces of the stream.
class FrameReader {
 public:
  void Add(absl::string_view bytes) { buffer_.append(bytes.data(), bytes.size()); }
  std::optional<Frame> Next();
  // A frame is larger than kMostFrameBytes: the stream is none of ours.
  bool broken() const { return broken_; }

 private:
  std::string buffer_;
  size_t at_ = 0;
  bool broken_ = false;
};

// All bytes, whatever interrupts; false if nobody reads any more.
bool WriteAll(int fd, absl::string_view bytes);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_FRAMES_H_
