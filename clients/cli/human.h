// Formats numbers, times and states for people. The texts are rounded: never parse them.
#ifndef BERTH_CLIENTS_CLI_HUMAN_H_
#define BERTH_CLIENTS_CLI_HUMAN_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/generated_enum_reflection.h>

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "berth/v1/job.pb.h"
#include "berth/v1/node.pb.h"
#include "berth/v1/queue.pb.h"
#include "clients/session/ended.h"
#include "support/proto_time.h"

namespace berth {

enum class Color { kNone, kGreen, kYellow, kRed, kBlue, kGray };

// A word and its color.
struct Word {
  std::string text;
  Color color = Color::kNone;
};

// The two largest units: "45s", "3m12s", "5h3m", "12d4h". Negative is "0s".
std::string HumanDuration(absl::Duration duration);
// "1.5Ti", "80Gi", "512", three digits at most.
std::string HumanBytes(int64_t bytes);
// "96", "1.5", "0.25".
std::string HumanCpu(int64_t millis);
// "cpu 96, memory 1Ti, gpu 8"; "-" for nothing.
std::string HumanResources(const v1::ResourceList& list);
std::string HumanResources(const v1::ResourceRequest& request);
// An amount of a resource as WaitReason names it: cores for "cpu", bytes for "memory",
// otherwise a count.
std::string HumanAmount(const std::string& resource, double amount);
// A count of devices: "8", "2.5".
std::string HumanCount(double count);

// How long ago, or "-" if the time is not set.
std::string HumanAge(bool has, const google::protobuf::Timestamp& timestamp, absl::Time now);
// "2026-11-20 14:05:00", or "-".
std::string HumanTime(bool has, const google::protobuf::Timestamp& timestamp, absl::TimeZone zone);

// "FifoStrict"; "-" for the unspecified value 0.
std::string HumanEnum(const google::protobuf::EnumDescriptor* type, int value);
template <class Enum>
std::string HumanEnum(Enum value) {
  return HumanEnum(google::protobuf::GetEnumDescriptor<Enum>(), static_cast<int>(value));
}

Word JobStateWord(v1::JobState state);
Word JobStateWord(const v1::JobStatus& status);  // with its pause
Word TaskStateWord(v1::TaskState state);
Word TaskStateWord(const v1::Task& task);
Word QueueStateWord(v1::QueueState state);
// With its flags: "Ready,Cordoned".
Word NodeStateWord(const v1::NodeStatus& status);

// One sentence: "needs 64 gpu, 32 free".
std::string HumanReason(const v1::WaitReason& reason);
// HumanReason with ", until 2026-11-20 14:05:00", if that is known and not in the text already.
std::string HumanReasonUntil(const v1::WaitReason& reason, absl::TimeZone zone);
// Why a node accepts no new tasks, or until when it backs off and why.
// "3.2 faults"; empty if it has not failed lately. Each counts half after each further week.
std::string NodeFaultsText(const v1::NodeStatus& status, absl::Time now);
std::string NodeReason(const v1::NodeStatus& status, absl::Time now, absl::TimeZone zone);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_HUMAN_H_
