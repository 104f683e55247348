// Internal to the codec: conversions that all records share.
#ifndef BERTH_STORAGE_CODEC_COMMON_H_
#define BERTH_STORAGE_CODEC_COMMON_H_

#include <google/protobuf/message.h>
#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "berth/store/v1/store.pb.h"
#include "core/access/actor.h"
#include "core/model/event.h"
#include "core/model/hyper_node.h"
#include "core/model/ids.h"
#include "core/model/job.h"
#include "core/model/node.h"
#include "core/model/queue.h"
#include "storage/store.h"

namespace berth::codec {

namespace pb = ::berth::store::v1;

// Times and durations have nanosecond resolution. Infinite ones are stored as the largest and
// smallest number of seconds, unless they are the field's default, which is stored as absence.
void SetTime(Time time, google::protobuf::Timestamp* out);
void SetDuration(Duration duration, google::protobuf::Duration* out);

void SetLabels(const std::map<std::string, std::string>& labels,
               google::protobuf::RepeatedPtrField<pb::Label>* out);
std::map<std::string, std::string> GetLabels(
    const google::protobuf::RepeatedPtrField<pb::Label>& labels);
void SetAmounts(const std::vector<NamedAmount>& amounts,
                google::protobuf::RepeatedPtrField<pb::Amount>* out);
std::vector<NamedAmount> GetAmounts(const google::protobuf::RepeatedPtrField<pb::Amount>& amounts);
void SetStrings(const std::vector<std::string>& strings,
                google::protobuf::RepeatedPtrField<std::string>* out);
std::vector<std::string> GetStrings(const google::protobuf::RepeatedPtrField<std::string>& strings);
void SetRequestMix(const RequestMix& mix, pb::RequestMix* out);
RequestMix GetRequestMix(const pb::RequestMix& message);
void SetDevices(const DeviceSet& devices, google::protobuf::RepeatedField<uint64_t>* out);

// Messages <-> core values that occur in both records and events.
void SetQueueSpec(const QueueSpec& spec, pb::QueueSpec* out);
QueueSpec GetQueueSpec(const pb::QueueSpec& message, class Reader& reader);
Strategy GetStrategy(pb::Strategy strategy, class Reader& reader);
void SetPlacements(const std::vector<Placement>& placements,
                   google::protobuf::RepeatedPtrField<pb::Placement>* out);
template <class SomeId, class Number>
std::vector<SomeId> GetIds(const google::protobuf::RepeatedField<Number>& numbers) {
  std::vector<SomeId> ids;
  ids.reserve(static_cast<size_t>(numbers.size()));
  for (Number number : numbers) ids.push_back(SomeId{number});
  return ids;
}
void SetNodeImages(const NodeImagesChanged& event, pb::NodeImagesChanged* out);
NodeImagesChanged GetNodeImages(const pb::NodeImagesChanged& message);
std::vector<Placement> GetPlacements(
    const google::protobuf::RepeatedPtrField<pb::Placement>& messages, class Reader& reader);
void SetReservation(const Reservation& reservation, pb::Reservation* out);
Reservation GetReservation(const pb::Reservation& message, class Reader& reader);
void SetNodeSpec(const NodeSpec& spec, pb::NodeSpec* out);
NodeSpec GetNodeSpec(const pb::NodeSpec& message, class Reader& reader);
void SetDrain(const Drain& drain, pb::Drain* out);
Drain GetDrain(const pb::Drain& message, class Reader& reader);
void SetHyperNodeSpec(const HyperNodeSpec& spec, pb::HyperNodeSpec* out);
HyperNodeSpec GetHyperNodeSpec(const pb::HyperNodeSpec& message, class Reader& reader);
void SetTopology(const TopologyConstraint& topology, pb::Topology* out);
TopologyConstraint GetTopology(const pb::Topology& message, class Reader& reader);
void SetJobSpec(const JobSpec& spec, pb::JobSpec* out);
JobSpec GetJobSpec(const pb::JobSpec& message, class Reader& reader);
void SetSeries(const SeriesSpec& spec, pb::SeriesSpec* out);
SeriesSpec GetSeries(const pb::SeriesSpec& message, class Reader& reader);
void SetSeriesStatus(const SeriesStatus& status, pb::SeriesStatus* out);
SeriesStatus GetSeriesStatus(const pb::SeriesStatus& message, class Reader& reader);
void SetJobStatus(const JobStatus& status, pb::JobStatus* out);
void SetAccessChange(const AccessChange& change, pb::AccessChange* out);
AccessChange GetAccessChange(const pb::AccessChange& message, class Reader& reader);
void SetPriorityClasses(const PriorityClassChange& change, pb::PriorityClassChange* out);
PriorityClassChange GetPriorityClasses(const pb::PriorityClassChange& message);
void SetActor(const Actor& actor, pb::Actor* out);
Actor GetActor(const pb::Actor& message, class Reader& reader);
CheckpointPlace GetCheckpointPlace(pb::CheckpointPlace place, class Reader& reader);

// Hangs and pauses (codec_marks.cc).
void SetTaskHung(const TaskHung& event, pb::TaskHung* out);
TaskHung GetTaskHung(const pb::TaskHung& message, class Reader& reader);
void SetPause(const Pause& pause, pb::Pause* out);
Pause GetPause(const pb::Pause& message, class Reader& reader);
void SetTasksPaused(const TasksPaused& event, pb::TasksPaused* out);
TasksPaused GetTasksPaused(const pb::TasksPaused& message, class Reader& reader);
void SetTasksResumed(const TasksResumed& event, pb::TasksResumed* out);
TasksResumed GetTasksResumed(const pb::TasksResumed& message);
PolicyAction GetAction(pb::PolicyAction action, class Reader& reader);
JobStatus GetJobStatus(const pb::JobStatus& message, class Reader& reader);
ReleaseReason GetReleaseReason(pb::ReleaseReason reason, class Reader& reader);

// Reads untrusted fields and remembers the first bad one, so that decoding is straight-line code
// with one check at the end.
class Reader {
 public:
  template <class Core>
  Core Enum(int value, bool is_known, absl::string_view field) {
    if (is_known) return static_cast<Core>(value);
    Refuse(field, value);
    return Core{};
  }
  // A number that must fit into a narrower type.
  template <class Narrow, class Wide>
  Narrow Number(Wide value, absl::string_view field) {
    if (std::in_range<Narrow>(value)) return static_cast<Narrow>(value);
    Refuse(field, static_cast<int64_t>(value));
    return Narrow{};
  }
  // Counters. None reaches 2^30, so incrementing one never overflows.
  int32_t Count(int32_t value, absl::string_view field) {
    if (value >= 0 && value <= 1 << 30) return value;
    Refuse(field, value);
    return 0;
  }
  Time GetTime(bool is_set, const google::protobuf::Timestamp& time, Time absent,
               absl::string_view field);
  Duration GetDuration(bool is_set, const google::protobuf::Duration& duration, Duration absent,
                       absl::string_view field);
  DeviceSet GetDevices(const google::protobuf::RepeatedField<uint64_t>& words,
                       absl::string_view field);
  void Refuse(absl::string_view field, int64_t value);
  void Refuse(std::string reason);

  // DATA_LOSS with the first error.
  absl::Status status() const {
    return reason_.empty() ? absl::OkStatus() : absl::DataLossError(reason_);
  }

 private:
  std::string reason_;
};

// Parses `value` into `message`, replacing its content, and returns its unknown fields. DATA_LOSS
// if it does not parse.
absl::Status ParseMessage(absl::string_view value, google::protobuf::Message* message,
                          std::string* unknown);

inline constexpr size_t kMaxFieldHead = 6;  // bytes: a tag below 16 and a 32-bit length

// The reader's status, naming the record.
absl::Status Verdict(const Reader& reader, RecordKind kind, absl::string_view key);

}  // namespace berth::codec

#endif  // BERTH_STORAGE_CODEC_COMMON_H_
