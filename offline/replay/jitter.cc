#include "offline/replay/jitter.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "support/random.h"

namespace berth::replay {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Messages = std::vector<const Message*>;

void MeanInto(const Messages& runs, Message* mean);

// The key that identifies an entry of a list: the key of a map entry, otherwise the name.
std::string KeyOf(const Message& entry) {
  const auto* type = entry.GetDescriptor();
  const FieldDescriptor* key = type->FindFieldByName(type->options().map_entry() ? "key" : "name");
  return entry.GetReflection()->GetString(entry, key);
}

// Entries that a run does not have count as 0.
void MeanOfLists(const Messages& runs, const FieldDescriptor* field, Message* mean) {
  std::vector<std::string> order;
  std::map<std::string, Messages> groups;
  for (const Message* run : runs) {
    const Reflection& reflection = *run->GetReflection();
    for (int i = 0; i < reflection.FieldSize(*run, field); ++i) {
      const Message& entry = reflection.GetRepeatedMessage(*run, field, i);
      Messages& group = groups[KeyOf(entry)];
      if (group.empty()) order.push_back(KeyOf(entry));
      group.push_back(&entry);
    }
  }
  for (const std::string& key : order) {
    Messages& group = groups[key];
    const std::unique_ptr<Message> nothing(group[0]->New());
    group.resize(runs.size(), nothing.get());
    MeanInto(group, mean->GetReflection()->AddMessage(mean, field));
  }
}

// The mean, or the greatest of maximum values. Fields that are absent in a run do not count.
void MeanOfNumbers(const Messages& runs, const FieldDescriptor* field, Message* mean) {
  double sum = 0, greatest = 0;
  int count = 0;
  for (const Message* run : runs) {
    const Reflection& reflection = *run->GetReflection();
    if (field->has_presence() && !reflection.HasField(*run, field)) continue;
    const double value = reflection.GetDouble(*run, field);
    greatest = count == 0 ? value : std::max(greatest, value);
    sum += value;
    ++count;
  }
  if (count == 0) return;
  mean->GetReflection()->SetDouble(mean, field,
                                   absl::StartsWith(field->name(), "max") ? greatest : sum / count);
}

void MeanOfField(const Messages& runs, const FieldDescriptor* field, Message* mean) {
  const Reflection& reflection = *mean->GetReflection();
  if (field->is_repeated()) return MeanOfLists(runs, field, mean);
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      Messages parts;
      for (const Message* run : runs) {
        if (reflection.HasField(*run, field)) parts.push_back(&reflection.GetMessage(*run, field));
      }
      if (parts.empty()) return;
      return MeanInto(parts, reflection.MutableMessage(mean, field));
    }
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return MeanOfNumbers(runs, field, mean);
    case FieldDescriptor::CPPTYPE_INT64: {  // a count
      int64_t sum = 0;
      for (const Message* run : runs) sum += reflection.GetInt64(*run, field);
      const double each = static_cast<double>(sum) / static_cast<double>(runs.size());
      return reflection.SetInt64(mean, field, std::llround(each));
    }
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.SetInt32(mean, field, reflection.GetInt32(*runs[0], field));
    default:
      return reflection.SetString(mean, field, reflection.GetString(*runs[0], field));
  }
}

void MeanInto(const Messages& runs, Message* mean) {
  const auto* type = mean->GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) MeanOfField(runs, type->field(i), mean);
}

}  // namespace

Workload Jittered(const Workload& workload, Duration most, uint64_t seed) {
  Workload copy = workload;
  Random numbers(seed);
  const auto steps = static_cast<uint64_t>(absl::ToInt64Seconds(most)) + 1;
  for (TraceJob& job : copy.jobs) {
    job.submit += absl::Seconds(static_cast<int64_t>(numbers.Below(steps)));
  }
  SortBySubmit(&copy);
  return copy;
}

sim::v1::PolicyResult MeanOf(const std::vector<sim::v1::PolicyResult>& runs) {
  Messages messages;
  for (const sim::v1::PolicyResult& run : runs) messages.push_back(&run);
  sim::v1::PolicyResult mean;
  MeanInto(messages, &mean);
  return mean;
}

}  // namespace berth::replay
