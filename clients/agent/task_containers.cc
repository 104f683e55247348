#include "clients/agent/task_containers.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "support/proto_time.h"

namespace berth {
namespace {

constexpr absl::string_view kPart = kContainers;  // "/containers/"
constexpr absl::Duration kDefaultTimeout = absl::Hours(24);
constexpr size_t kMaxName = 63;

// Where kPart begins, if NAME follows it and is the end.
size_t FindPart(const std::string& directory) {
  const size_t slash = directory.rfind('/');
  if (slash == std::string::npos || slash + 1 < kPart.size()) return std::string::npos;
  const size_t begin = slash + 1 - kPart.size();
  return absl::StartsWith(absl::string_view(directory).substr(begin), kPart) ? begin
                                                                             : std::string::npos;
}

bool IsLabel(absl::string_view name) {
  if (name.empty() || name.size() > kMaxName || name[0] == '-') return false;
  for (const char c : name) {
    if (!absl::ascii_islower(static_cast<unsigned char>(c)) &&
        !absl::ascii_isdigit(static_cast<unsigned char>(c)) && c != '-')
      return false;
  }
  return true;
}

}  // namespace

v1::TaskLaunch LaunchOf(const v1::TaskLaunch& task, const v1::Container& container) {
  v1::TaskLaunch launch = task;
  launch.clear_containers();
  launch.clear_container_images();
  launch.clear_watchdog();
  launch.clear_terminal();
  *launch.mutable_command() = container.command();
  *launch.mutable_args() = container.args();
  *launch.mutable_env() = container.env();
  *launch.mutable_volumes() = container.volumes();
  launch.set_working_dir(container.working_dir());
  launch.set_image(container.image());
  launch.set_image_pull_policy(container.image_pull_policy());
  launch.set_registry_auth(container.registry_auth());
  launch.clear_image_digest();
  for (const v1::ImageDigest& image : task.container_images()) {
    if (image.image() == container.image()) launch.set_image_digest(image.digest());
  }
  return launch;
}

std::string ContainerDirectory(const std::string& task_directory, const std::string& container) {
  return absl::StrCat(task_directory, kPart, container);
}

std::string TaskDirectoryOf(const std::string& directory) {
  return directory.substr(0, FindPart(directory));
}

std::string ContainerNameOf(const std::string& directory) {
  const size_t part = FindPart(directory);
  return part == std::string::npos ? "" : directory.substr(part + kPart.size());
}

absl::StatusOr<std::string> NamedDirectory(const std::string& task_directory,
                                           const std::string& container) {
  if (container.empty()) return task_directory;
  if (!IsLabel(container)) return absl::InvalidArgumentError("not the name of a container");
  return ContainerDirectory(task_directory, container);
}

void ShortenContainers(v1::TaskLaunch* launch) {
  for (v1::Container& container : *launch->mutable_containers()) {
    v1::Container kept;
    kept.set_name(container.name());
    kept.set_image(container.image());
    container = std::move(kept);
  }
}

SupervisorSpec::Kind KindOf(const v1::Container& container) {
  switch (container.kind()) {
    case v1::Container::INIT:
      return SupervisorSpec::kInit;
    case v1::Container::PEER:
      return SupervisorSpec::kPeer;
    default:
      return SupervisorSpec::kSidecar;
  }
}

int64_t TimeoutMsOf(const v1::Container& container) {
  if (container.kind() != v1::Container::INIT) return 0;
  return absl::ToInt64Milliseconds(container.has_timeout() ? DurationFrom(container.timeout())
                                                           : kDefaultTimeout);
}

}  // namespace berth
