#include "clients/cli/debug_bundle.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clients/cli/archive.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace berth {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Fields of texts that scheduling depends on, and that are names: MESSAGE.FIELD.
constexpr std::array<absl::string_view, 17> kShown = {
    "JobSpec.queue",
    "JobSpec.user",
    "JobSpec.priority_class",
    "JobSpec.kill_signal",
    "TaskGroup.name",
    "TaskGroup.spare_of",
    "DeviceRequest.kind",
    "DeviceRequest.model",
    "DeviceRequest.mig",
    "DeviceRequest.deny_models",
    "DeviceRequest.min_compute_capability",
    "TopologyConstraint.highest_tier_name",
    "TopologyConstraint.kind",
    "TaskAffinity.near_groups",
    "TaskAffinity.apart_from_groups",
    "CopiesOf.group",
    "JobDependency.job",
};

bool IsShown(const FieldDescriptor& field) {
  const std::string name = absl::StrCat(field.containing_type()->name(), ".", field.name());
  return std::find(kShown.begin(), kShown.end(), name) != kShown.end();
}

bool IsText(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
}

// Maps of numbers, such as extended resources, have names of resources as keys.
bool MapsToText(const FieldDescriptor& field) {
  return field.is_map() && IsText(*field.message_type()->map_value());
}

void HideTexts(Message* message) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (IsText(*field) || MapsToText(*field)) {
      if (!IsShown(*field)) reflection.ClearField(message, field);
    } else if (field->is_map() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      continue;
    } else if (field->is_repeated()) {
      for (int i = 0; i < reflection.FieldSize(*message, field); ++i)
        HideTexts(reflection.MutableRepeatedMessage(message, field, i));
    } else {
      HideTexts(reflection.MutableMessage(message, field));
    }
  }
}

bool SoundsSecret(absl::string_view key) {
  for (const absl::string_view word : {"token", "password", "secret"})
    if (absl::StrContains(absl::AsciiStrToLower(key), word)) return true;
  return false;
}

}  // namespace

void HideUserTexts(v1::Job* job) {
  if (job->has_spec()) HideTexts(job->mutable_spec());
  if (job->has_status()) job->mutable_status()->clear_cancel_reason();
}

std::string WithoutSecrets(absl::string_view yaml) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(yaml, '\n')) {
    const size_t colon = line.find(':');
    const bool hides = colon != absl::string_view::npos && SoundsSecret(line.substr(0, colon));
    const absl::string_view value =
        hides ? absl::StripLeadingAsciiWhitespace(line.substr(colon + 1)) : "";
    const bool whole = value.empty() || absl::StartsWith(value, "/");
    lines.push_back(whole ? std::string(line) : absl::StrCat(line.substr(0, colon), ": (hidden)"));
  }
  return absl::StrJoin(lines, "\n");
}

absl::Status WriteBundle(const std::string& directory, const std::string& name,
                         const std::string& file) {
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", file));
  gzFile out = gzdopen(fd, "wb");
  if (out == nullptr) {
    close(fd);
    unlink(file.c_str());
    return absl::InternalError(absl::StrCat("cannot write ", file, ": no memory"));
  }
  ArchiveReport report;
  absl::Status status = WriteTar(
      directory, name,
      [&](absl::string_view bytes) {
        return gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size())) ==
               static_cast<int>(bytes.size());
      },
      &report);
  const int closed = gzclose(out);
  if (status.ok() && closed != Z_OK)
    status = absl::InternalError(absl::StrCat("cannot write ", file, ": ", closed));
  if (!status.ok()) unlink(file.c_str());
  return status;
}

}  // namespace berth
