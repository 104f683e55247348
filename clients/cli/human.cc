#include "clients/cli/human.h"

#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "support/yaml_proto_scalar.h"

namespace berth {
namespace {

struct Unit {
  const char* name;
  int64_t size;
};

// At most three digits, no zeros at the end: 1.5, 12.3, 123.
std::string ThreeDigits(double value) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::string text = absl::StrFormat("%.*f", decimals, value);
  if (decimals == 0) return text;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

template <class Enum>
std::string EnumWord(Enum value) {
  const auto* descriptor = google::protobuf::GetEnumDescriptor<Enum>()->FindValueByNumber(value);
  if (descriptor == nullptr || value == 0) return "Unknown";
  return EnumText(descriptor);
}

using Amounts = std::map<std::string, double>;

// A ResourceList or ResourceRequest: cpu, memory and scratch first, the others by name; zero
// amounts left out.
template <class Message>
std::string Describe(const Message& amounts, const Amounts& counts) {
  const int64_t cpu_millis = amounts.cpu_millis(), memory_bytes = amounts.memory_bytes();
  std::vector<std::string> parts;
  if (cpu_millis != 0) parts.push_back(absl::StrCat("cpu ", HumanCpu(cpu_millis)));
  if (memory_bytes != 0) parts.push_back(absl::StrCat("memory ", HumanBytes(memory_bytes)));
  if (amounts.scratch_bytes() != 0)
    parts.push_back(absl::StrCat("scratch ", HumanBytes(amounts.scratch_bytes())));
  for (const auto& count : counts) {
    if (count.second != 0)
      parts.push_back(absl::StrCat(count.first, " ", HumanCount(count.second)));
  }
  return parts.empty() ? "-" : absl::StrJoin(parts, ", ");
}

std::string Needs(const v1::WaitReason& reason) {
  const std::string& unit = reason.resource();
  const bool plain = unit == "cpu" || unit == "memory" || unit == "scratch";
  const auto amount = [&](double value) {
    return plain ? absl::StrCat(unit, " ", HumanAmount(unit, value))
                 : absl::StrCat(HumanCount(value), " ", unit);
  };
  return absl::StrCat("needs ", amount(reason.needed()), ", ", HumanAmount(unit, reason.free()),
                      " free");
}

std::string BeyondLimit(const v1::WaitReason& reason) {
  const std::string& unit = reason.resource();
  return absl::StrCat("can never start: requests ", unit, " ", HumanAmount(unit, reason.needed()),
                      ", the limit of queue ", reason.queue(), " is ",
                      HumanAmount(unit, reason.limit()));
}

std::string ReasonText(const v1::WaitReason& reason) {
  switch (reason.code()) {
    case v1::WaitReason::INSUFFICIENT_RESOURCES:
      return Needs(reason);
    case v1::WaitReason::QUEUE_LIMIT:
      if (reason.never()) return BeyondLimit(reason);
      return absl::StrCat("limit of queue ", reason.queue(), ": ", reason.resource(), " ",
                          HumanAmount(reason.resource(), reason.limit()), " (", Needs(reason), ")");
    case v1::WaitReason::QUEUE_CLOSED:
      return absl::StrCat("queue ", reason.queue(), " is closed");
    case v1::WaitReason::NO_MATCHING_NODE:
      return "no node matches";
    case v1::WaitReason::NEVER_FITS:
      return "never fits: " + Needs(reason) + " on an idle cluster";
    case v1::WaitReason::DEPENDENCY:
      return absl::StrCat("waiting for job ", reason.job());
    case v1::WaitReason::START_TIME:
      return "start time not reached";
    case v1::WaitReason::USER_HOLD:
      return "held by its user";
    case v1::WaitReason::RETRY_BACKOFF:
      return "waiting before the next retry";
    case v1::WaitReason::NOT_CONSIDERED:
      return "not considered yet";
    case v1::WaitReason::QUEUE_RUNNING_JOBS:
      return absl::StrCat("queue ", reason.queue(), " already runs its limit of ", reason.limit(),
                          " jobs");
    case v1::WaitReason::GROUP_DEPENDENCY:
      return "waiting for another group";
    case v1::WaitReason::NODE_FENCING:
      return "waiting until a silent node is fenced";
    case v1::WaitReason::NON_PREEMPTIBLE_QUOTA:
      return absl::StrCat("not preemptible: queue ", reason.queue(), " deserves ",
                          reason.resource(), " ", HumanAmount(reason.resource(), reason.limit()),
                          " (", Needs(reason), ")");
    case v1::WaitReason::GUARANTEE_KEPT:
      return "guaranteed to other queues: " + Needs(reason);
    case v1::WaitReason::BEHIND_HEAD:
      return absl::StrCat("behind job ", reason.job());
    case v1::WaitReason::RESERVED:
      return absl::StrCat("reserved for job ", reason.job(), ": ", Needs(reason));
    case v1::WaitReason::WAITS_FOR_BETTER_TIER:
      return "waiting for a better topology tier, which will be free soon";
    case v1::WaitReason::JOB_AFFINITY:
      return "no node satisfies its affinity";
    case v1::WaitReason::PAUSE_ENDS:
      if (!reason.job().empty() && reason.needed() == 0) return "resumes once its place is free";
      return absl::StrCat("resumes once its ",
                          reason.resource() == "cpu" ? "CPU is" : "devices are",
                          " free: ", Needs(reason));
    default:
      return "";
  }
}

}  // namespace

std::string HumanDuration(absl::Duration duration) {
  static constexpr Unit kUnits[] = {{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}};
  int64_t seconds = duration <= absl::ZeroDuration() ? 0 : absl::ToInt64Seconds(duration);
  for (size_t i = 0; i < std::size(kUnits); ++i) {
    if (seconds < kUnits[i].size) continue;
    std::string text = absl::StrCat(seconds / kUnits[i].size, kUnits[i].name);
    seconds %= kUnits[i].size;
    if (i + 1 < std::size(kUnits) && seconds >= kUnits[i + 1].size) {
      absl::StrAppend(&text, seconds / kUnits[i + 1].size, kUnits[i + 1].name);
    }
    return text;
  }
  return "0s";
}

std::string HumanBytes(int64_t bytes) {
  static constexpr Unit kUnits[] = {{"Ei", int64_t{1} << 60}, {"Pi", int64_t{1} << 50},
                                    {"Ti", int64_t{1} << 40}, {"Gi", int64_t{1} << 30},
                                    {"Mi", int64_t{1} << 20}, {"Ki", int64_t{1} << 10}};
  for (const Unit& unit : kUnits) {
    if (bytes >= unit.size) {
      return absl::StrCat(ThreeDigits(static_cast<double>(bytes) / static_cast<double>(unit.size)),
                          unit.name);
    }
  }
  return absl::StrCat(bytes);
}

std::string HumanCpu(int64_t millis) {
  return millis % 1000 == 0 ? absl::StrCat(millis / 1000)
                            : ThreeDigits(static_cast<double>(millis) / 1000);
}

std::string HumanResources(const v1::ResourceList& list) {
  return Describe(list, Amounts(list.counts().begin(), list.counts().end()));
}

std::string HumanResources(const v1::ResourceRequest& request) {
  Amounts counts(request.extended().begin(), request.extended().end());
  std::string by_memory;
  for (const v1::DeviceRequest& device : request.devices()) {
    if (device.count() == 0 && device.share() == 0 && device.cores() == 0) {
      absl::StrAppend(&by_memory, ", ", HumanBytes(device.memory_bytes()), " of a ", device.kind());
    }
    counts[device.kind()] += device.share() > 0   ? device.share()
                             : device.cores() > 0 ? device.cores() / 100.0
                                                  : device.count();
  }
  const std::string others = Describe(request, counts);
  if (by_memory.empty()) return others;
  return others == "-" ? by_memory.substr(2) : others + by_memory;
}

std::string HumanCount(double count) {
  std::string text = absl::StrFormat("%.3f", count);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string HumanAmount(const std::string& resource, double amount) {
  if (resource == "cpu") return HumanCpu(std::llround(amount));
  if (resource == "memory" || resource == "scratch") return HumanBytes(std::llround(amount));
  return HumanCount(amount);
}

std::string HumanAge(bool has, const google::protobuf::Timestamp& timestamp, absl::Time now) {
  return has ? HumanDuration(now - TimeFrom(timestamp)) : "-";
}

std::string HumanTime(bool has, const google::protobuf::Timestamp& timestamp, absl::TimeZone zone) {
  return has ? absl::FormatTime("%Y-%m-%d %H:%M:%S", TimeFrom(timestamp), zone) : "-";
}

std::string HumanEnum(const google::protobuf::EnumDescriptor* type, int value) {
  const auto* descriptor = type->FindValueByNumber(value);
  return descriptor == nullptr || value == 0 ? "-" : EnumText(descriptor);
}

Word JobStateWord(v1::JobState state) {
  static const std::map<int, Color> kColors = {
      {v1::JOB_PENDING, Color::kYellow},    {v1::JOB_HELD, Color::kYellow},
      {v1::JOB_BINDING, Color::kBlue},      {v1::JOB_RUNNING, Color::kGreen},
      {v1::JOB_RESTARTING, Color::kYellow}, {v1::JOB_COMPLETING, Color::kBlue},
      {v1::JOB_SUCCEEDED, Color::kGray},    {v1::JOB_FAILED, Color::kRed},
      {v1::JOB_CANCELLED, Color::kGray}};
  const auto color = kColors.find(state);
  return {EnumWord(state), color == kColors.end() ? Color::kNone : color->second};
}

Word JobStateWord(const v1::JobStatus& status) {
  if (status.pause().state() == v1::JobPause::STATE_UNSPECIFIED ||
      status.state() != v1::JOB_RUNNING)
    return JobStateWord(status.state());
  return {EnumWord(status.pause().state()), Color::kYellow};
}

Word TaskStateWord(const v1::Task& task) {
  if (task.pause() == v1::JobPause::STATE_UNSPECIFIED || task.state() != v1::TASK_RUNNING)
    return TaskStateWord(task.state());
  return {EnumWord(task.pause()), Color::kYellow};
}

Word TaskStateWord(v1::TaskState state) {
  switch (state) {
    case v1::TASK_RUNNING:
      return {EnumWord(state), Color::kGreen};
    case v1::TASK_LOST:
    case v1::TASK_FAILED:
      return {EnumWord(state), Color::kRed};
    case v1::TASK_SUCCEEDED:
      return {EnumWord(state), Color::kGray};
    case v1::TASK_PENDING:
      return {EnumWord(state), Color::kYellow};
    default:
      return {EnumWord(state), Color::kBlue};
  }
}

Word QueueStateWord(v1::QueueState state) {
  return {EnumWord(state), state == v1::QUEUE_OPEN ? Color::kGreen : Color::kYellow};
}

Word NodeStateWord(const v1::NodeStatus& status) {
  Word word{EnumWord(status.state()),
            status.state() == v1::NODE_READY ? Color::kGreen : Color::kRed};
  const bool devices = status.drain().devices_size() > 0;
  if (!status.draining() && !status.cordoned() && !devices) return word;
  if (word.color == Color::kGreen) word.color = Color::kYellow;
  if (status.draining() || status.cordoned()) {
    word.text += status.draining() ? ",Draining" : ",Cordoned";
  }
  if (devices && !status.draining()) word.text += ",DrainingDevices";
  return word;
}

namespace {

constexpr double kFailingNode = 3;
constexpr absl::Duration kFaultHalfLife = absl::Hours(7 * 24);

double FaultsNow(const v1::NodeStatus& status, absl::Time now) {
  if (!status.has_fault_time()) return 0;
  const absl::Duration past = std::max(now - TimeFrom(status.fault_time()), absl::ZeroDuration());
  return status.faults() * std::exp2(-absl::FDivDuration(past, kFaultHalfLife));
}

// `until` follows what the job waits for, before what each action says.
std::string TextOf(const v1::WaitReason& reason, absl::string_view until) {
  if (reason.code() == v1::WaitReason::NODES_BACKING_OFF && !reason.detail().empty()) {
    return reason.detail();
  }
  std::string text = ReasonText(reason);
  if (text.empty()) text = EnumWord(reason.code());
  if (!reason.group().empty()) absl::StrAppend(&text, ", group ", reason.group());
  if (!reason.detail().empty()) absl::StrAppend(&text, ": ", reason.detail());
  absl::StrAppend(&text, until);
  for (const v1::RoomAsked& asked : reason.asked()) {
    absl::StrAppend(&text, "; ", asked.action(), ": ", asked.barred());
  }
  return text;
}

}  // namespace

std::string HumanReason(const v1::WaitReason& reason) { return TextOf(reason, ""); }

std::string HumanReasonUntil(const v1::WaitReason& reason, absl::TimeZone zone) {
  if (!reason.has_until()) return TextOf(reason, "");
  return TextOf(reason, absl::StrCat(", until ", HumanTime(true, reason.until(), zone)));
}

std::string NodeFaultsText(const v1::NodeStatus& status, absl::Time now) {
  const double faults = FaultsNow(status, now);
  return faults < 0.05 ? "" : absl::StrFormat("%.1f", faults);
}

std::string NodeReason(const v1::NodeStatus& status, absl::Time now, absl::TimeZone zone) {
  const bool backs_off = status.has_backoff_until() && TimeFrom(status.backoff_until()) > now;
  if (!backs_off && !status.cordoned() && FaultsNow(status, now) >= kFailingNode) {
    return absl::StrCat(status.reason(), status.reason().empty() ? "" : "; ",
                        "fails again and again: cordon and repair it");
  }
  if (!backs_off) return status.reason();
  const char* starts = status.refusals() == 1 ? " refused start" : " refused starts";
  return absl::StrCat(status.reason(), status.reason().empty() ? "" : "; ", "backs off until ",
                      absl::FormatTime("%H:%M:%S", TimeFrom(status.backoff_until()), zone),
                      " after ", status.refusals(), starts, status.refusal().empty() ? "" : ": ",
                      status.refusal());
}

}  // namespace berth
