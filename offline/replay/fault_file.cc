#include "offline/replay/fault_file.h"

#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/proto_time.h"
#include "support/yaml_proto.h"

namespace berth::replay {
namespace {

constexpr double kMostCount = 1e9;

absl::Status WrongFault(const std::string& path, const char* what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

absl::StatusOr<FaultKind> KindOf(const sim::v1::FaultCause& cause, const std::string& path) {
  switch (cause.kind()) {
    case sim::v1::FaultCause::NODE:
      return FaultKind::kNode;
    case sim::v1::FaultCause::TASK:
      return FaultKind::kTask;
    case sim::v1::FaultCause::HANG:
      return FaultKind::kHang;
    default:
      return WrongFault(path + ".kind", "must be NODE, TASK or HANG");
  }
}

absl::StatusOr<FaultCause> ToFaultCause(const sim::v1::FaultCause& from, const std::string& path) {
  FaultCause cause{.name = from.name(),
                   .count = from.count(),
                   .detection = DurationFrom(from.detection()),
                   .repair = DurationFrom(from.repair())};
  if (cause.name.empty()) return WrongFault(path + ".name", "must be given");
  if (!(cause.count > 0 && cause.count <= kMostCount)) {
    return WrongFault(path + ".count", "must be above 0, and at most 1e9");
  }
  const absl::StatusOr<FaultKind> kind = KindOf(from, path);
  if (!kind.ok()) return kind.status();
  cause.kind = *kind;
  const bool node = cause.kind == FaultKind::kNode;
  if (node && cause.repair <= absl::ZeroDuration()) {
    return WrongFault(path + ".repair", "must be above 0 for NODE");
  }
  if (!node && from.has_repair()) return WrongFault(path + ".repair", "is for NODE only");
  return cause;
}

}  // namespace

absl::StatusOr<FaultModel> ToFaultModel(const sim::v1::Faults& faults) {
  FaultModel model{.nodes = faults.nodes(), .period = DurationFrom(faults.period()), .causes = {}};
  if (model.nodes <= 0) return WrongFault("nodes", "must be above 0");
  if (model.period <= absl::ZeroDuration()) return WrongFault("period", "must be above 0");
  if (faults.causes().empty()) return WrongFault("causes", "must not be empty");
  std::set<std::string> names;
  for (int i = 0; i < faults.causes_size(); ++i) {
    const std::string path = absl::StrCat("causes[", i, "]");
    absl::StatusOr<FaultCause> cause = ToFaultCause(faults.causes(i), path);
    if (!cause.ok()) return cause.status();
    if (!names.insert(cause->name).second) return WrongFault(path + ".name", "is repeated");
    model.causes.push_back(*std::move(cause));
  }
  return model;
}

absl::StatusOr<FaultModel> ReadFaultFile(const std::string& path) {
  sim::v1::Faults faults;
  if (auto status = ReadYamlFile(path, &faults); !status.ok()) return status;
  absl::StatusOr<FaultModel> model = ToFaultModel(faults);
  if (model.ok()) return model;
  return absl::Status(model.status().code(), absl::StrCat(path, ": ", model.status().message()));
}

StrikeSequence::StrikeSequence(const FaultModel& model, uint64_t nodes, uint64_t seed)
    : model_(model), nodes_(nodes), random_(seed) {
  for (const FaultCause& cause : model.causes) all_ += cause.count;
  mean_ = model.period * (static_cast<double>(model.nodes) / static_cast<double>(nodes) / all_);
  Pop();
}

void StrikeSequence::Pop() {
  next_.time += mean_ * -std::log1p(-random_.Unit());
  double at = random_.Unit() * all_;
  next_.cause = 0;
  while (next_.cause + 1 < model_.causes.size() && at >= model_.causes[next_.cause].count) {
    at -= model_.causes[next_.cause++].count;
  }
  next_.node = random_.Below(nodes_);
  next_.task = random_.Unit();
}

}  // namespace berth::replay
