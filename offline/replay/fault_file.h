// Random faults at given rates (the file of --faults, docs/developers/replay.md).
#ifndef BERTH_OFFLINE_REPLAY_FAULT_FILE_H_
#define BERTH_OFFLINE_REPLAY_FAULT_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "berth/sim/v1/training.pb.h"
#include "support/random.h"

namespace berth::replay {

enum class FaultKind : uint8_t { kNode, kTask, kHang };

struct FaultCause {
  std::string name;
  double count = 0;  // on FaultModel::nodes in FaultModel::period
  FaultKind kind = FaultKind::kNode;
  absl::Duration detection;
  absl::Duration repair;  // kNode
};

struct FaultModel {
  int64_t nodes = 1;
  absl::Duration period = absl::Seconds(1);
  std::vector<FaultCause> causes;  // not empty
};

// INVALID_ARGUMENT, with the path, for a value that is missing or out of range.
absl::StatusOr<FaultModel> ToFaultModel(const sim::v1::Faults& faults);
// The same with the errors of reading; the name of the file comes first.
absl::StatusOr<FaultModel> ReadFaultFile(const std::string& path);

// When and where faults happen. The sequence depends on the seed and the number of nodes, and on
// nothing that is scheduled.
struct Strike {
  absl::Duration time;  // since the begin
  size_t cause = 0;     // in FaultModel::causes
  uint64_t node = 0;    // of all nodes
  double task = 0;      // which task of the node, in [0, 1)
};
class StrikeSequence {
 public:
  // `nodes` > 0. The model must outlive this.
  StrikeSequence(const FaultModel& model, uint64_t nodes, uint64_t seed);

  const Strike& next() const { return next_; }
  void Pop();

 private:
  const FaultModel& model_;
  const uint64_t nodes_;
  double all_ = 0;       // counts of all causes
  absl::Duration mean_;  // between two
  Random random_;
  Strike next_;
};

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_FAULT_FILE_H_
