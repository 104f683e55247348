#include "server/config/reload.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/log.h"

namespace berth {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::TimeUtil;

constexpr absl::string_view kLive[] = {"scheduling",  "cordon_after_refusals", "finished_job_ttl",
                                       "history",     "limits.kill_grace",     "log.level",
                                       "job_defaults"};

bool IsLive(absl::string_view path) {
  return std::any_of(std::begin(kLive), std::end(kLive), [&](absl::string_view key) {
    return path == key || absl::StartsWith(path, absl::StrCat(key, "."));
  });
}

bool IsDuration(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         field->message_type()->full_name() == "google.protobuf.Duration";
}

std::string ScalarText(const Message& message, const FieldDescriptor* field) {
  const auto* r = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return r->GetString(message, field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return r->GetEnum(message, field)->name();
    case FieldDescriptor::CPPTYPE_BOOL:
      return r->GetBool(message, field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return absl::StrCat(r->GetDouble(message, field));
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(r->GetInt64(message, field));
    default:
      return absl::StrCat(r->GetInt32(message, field));
  }
}

// Lists in the configuration contain names or messages.
std::string ListText(const Message& message, const FieldDescriptor* field) {
  const auto* r = message.GetReflection();
  std::vector<std::string> entries;
  for (int i = 0; i < r->FieldSize(message, field); ++i) {
    entries.push_back(
        field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE
            ? absl::StrCat("{", r->GetRepeatedMessage(message, field, i).ShortDebugString(), "}")
            : r->GetRepeatedString(message, field, i));
  }
  return absl::StrCat("[", absl::StrJoin(entries, ", "), "]");
}

// The text of a list, a duration or a scalar.
std::string ValueText(const Message& message, const FieldDescriptor* field) {
  const auto* r = message.GetReflection();
  if (field->is_repeated()) return ListText(message, field);
  if (field->has_presence() && !r->HasField(message, field)) return "none";
  if (!IsDuration(field)) return ScalarText(message, field);
  return TimeUtil::ToString(
      dynamic_cast<const google::protobuf::Duration&>(r->GetMessage(message, field)));
}

void Diff(const std::string& prefix, const Message& before, const Message& after,
          std::vector<ConfigChange>* out) {
  const auto* descriptor = before.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const std::string path = prefix + field->name();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated() &&
        !IsDuration(field)) {
      Diff(path + ".", before.GetReflection()->GetMessage(before, field),
           after.GetReflection()->GetMessage(after, field), out);
      continue;
    }
    ConfigChange change{path, ValueText(before, field), ValueText(after, field), !IsLive(path)};
    if (change.before != change.after) out->push_back(std::move(change));
  }
}

void LogChanges(const std::vector<ConfigChange>& changes) {
  LogInfo("configuration reloaded", {{"changes", changes.size()}});
  for (const ConfigChange& change : changes) {
    LogLine(change.needs_restart ? LogLevel::kWarn : LogLevel::kInfo,
            change.needs_restart ? "configuration needs a restart" : "configuration changed",
            {{"key", change.path}, {"before", change.before}, {"after", change.after}});
  }
}

}  // namespace

std::vector<ConfigChange> DiffConfig(const config::v1::Server& before,
                                     const config::v1::Server& after) {
  std::vector<ConfigChange> changes;
  Diff("", before, after, &changes);
  return changes;
}

config::v1::Server WithLiveKeys(const config::v1::Server& in_force,
                                const config::v1::Server& wanted) {
  config::v1::Server mixed = in_force;
  *mixed.mutable_scheduling() = wanted.scheduling();
  mixed.set_cordon_after_refusals(wanted.cordon_after_refusals());
  *mixed.mutable_finished_job_ttl() = wanted.finished_job_ttl();
  *mixed.mutable_history() = wanted.history();
  mixed.clear_job_defaults();
  if (wanted.has_job_defaults()) *mixed.mutable_job_defaults() = wanted.job_defaults();
  *mixed.mutable_limits()->mutable_kill_grace() = wanted.limits().kill_grace();
  mixed.mutable_log()->set_level(wanted.log().level());
  return mixed;
}

Reloader::Reloader(config::v1::Server in_force, Read read, Adopt adopt)
    : read_(std::move(read)), adopt_(std::move(adopt)), in_force_(std::move(in_force)) {}

absl::StatusOr<std::vector<ConfigChange>> Reloader::Reload(bool dry_run) {
  absl::MutexLock lock(&mutex_);
  absl::StatusOr<config::v1::Server> wanted =
      read_ != nullptr ? read_()
                       : absl::FailedPreconditionError("berthd was started without --config");
  if (!wanted.ok()) {
    LogError("the configuration is unchanged", {{"error", wanted.status()}});
    return absl::FailedPreconditionError(
        absl::StrCat("the configuration is unchanged: ", wanted.status().message()));
  }
  std::vector<ConfigChange> changes = DiffConfig(in_force_, *wanted);
  if (dry_run) return changes;
  LogChanges(changes);
  in_force_ = WithLiveKeys(in_force_, *wanted);
  adopt_(in_force_);
  return changes;
}

}  // namespace berth
