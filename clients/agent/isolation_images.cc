// Isolation: the images of tasks.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "clients/agent/fault.h"
#include "clients/agent/image_registries.h"
#include "clients/agent/isolation.h"
#include "clients/agent/task_containers.h"
#include "support/proto_time.h"

namespace berth {
namespace {

constexpr char kDefaultUmoci[] = "/usr/bin/umoci";
constexpr absl::Duration kDefaultUnpackTime = absl::Hours(1);
constexpr int64_t kDefaultImageFiles = 4'000'000;
constexpr int64_t kDefaultImageBytes = int64_t{64} << 30;
constexpr int64_t kDefaultCacheBytes = int64_t{256} << 30;
constexpr int64_t kDefaultMinFreeBytes = int64_t{256} << 20;  // of health.minFree

}  // namespace

std::string Isolation::ImageCache() const {
  const std::string& cache = config_.images().cache();
  return cache.empty() ? state_directory_ + "/images" : cache;
}

// The same machine may have several agents.
std::string Isolation::ImageLink(const TaskId& id, const std::string& directory) const {
  const std::string container = ContainerNameOf(directory);
  return absl::StrCat(config_.node_name(), "-", ToString(id), container.empty() ? "" : "+",
                      container);
}

// Of the task and its containers.
void Isolation::RemoveImageLinks(const TaskId& id) const {
  const std::string own = ImageLink(id, "");
  std::error_code ignored;
  for (const auto& link : std::filesystem::directory_iterator(ImageCache() + "/used", ignored)) {
    const std::string name = link.path().filename();
    if (name == own || absl::StartsWith(name, own + "+")) unlink(link.path().c_str());
  }
}

// Twice the drain threshold: images must not cause a drain.
agent::v1::ImageRequest Isolation::ImageDefaults() const {
  const config::v1::Images& images = config_.images();
  const auto or_else = [](int64_t given, int64_t otherwise) {
    return given > 0 ? given : otherwise;
  };
  agent::v1::ImageRequest request;
  request.set_cache(ImageCache());
  request.set_umoci(images.umoci().empty() ? kDefaultUmoci : images.umoci());
  request.set_cache_bytes(or_else(images.cache_bytes(), kDefaultCacheBytes));
  request.set_max_image_bytes(or_else(images.max_image_bytes(), kDefaultImageBytes));
  request.set_max_image_files(or_else(images.max_image_files(), kDefaultImageFiles));
  const absl::Duration timeout =
      images.has_unpack_timeout() ? DurationFrom(images.unpack_timeout()) : kDefaultUnpackTime;
  request.set_timeout_ms(absl::ToInt64Milliseconds(timeout));
  request.set_min_free_bytes(2 * or_else(config_.health().min_free_bytes(), kDefaultMinFreeBytes));
  return request;
}

absl::StatusOr<std::optional<agent::v1::ImageRequest>> Isolation::UnpackRequest(
    const TaskId& id, const v1::TaskLaunch& launch, const std::string& directory) const {
  if (launch.image().empty()) return std::nullopt;
  agent::v1::ImageRequest request = ImageDefaults();
  request.set_link(ImageLink(id, directory));
  const auto image = FindImage(config_.images().directory(), launch.image());
  if (!image.ok() && config_.images().registries().empty()) return image.status();
  if (!image.ok()) {
    const absl::StatusOr<TaskUser> user = users_.Find(launch.run_as());
    if (!user.ok()) return user.status();
    auto pull = PullOf(config_.images(), launch, *user, directory);
    if (!pull.ok()) return pull.status();
    *request.mutable_pull() = *std::move(pull);
    return request;
  }
  if (image->layout.empty()) return std::nullopt;
  request.set_layout(image->layout);
  request.set_tag(image->tag);
  return request;
}

std::optional<agent::v1::ImageRequest> Isolation::CleanupRequest() const {
  const config::v1::Images& images = config_.images();
  const bool none = images.directory().empty() && images.registries().empty();
  if (none || geteuid() != 0) return std::nullopt;
  return ImageDefaults();
}

absl::StatusOr<TaskImage> Isolation::Image(const TaskId& id, const v1::TaskLaunch& launch,
                                           const std::string& directory) const {
  auto linked = LinkedImage(ImageCache(), ImageLink(id, directory));
  if (!absl::IsNotFound(linked.status())) return linked;
  const auto image = FindImage(config_.images().directory(), launch.image());
  if (!image.ok()) return image.status();
  if (image->rootfs.empty()) return linked.status();
  return TaskImage{.rootfs = image->rootfs, .env = {}, .working_directory = ""};
}

void Isolation::ReleaseImagesExcept(const std::set<TaskId>& tasks) const {
  std::set<std::string> kept;
  for (const TaskId& id : tasks) kept.insert(ImageLink(id, ""));
  std::error_code ignored;
  for (const auto& link : std::filesystem::directory_iterator(ImageCache() + "/used", ignored)) {
    std::string name = link.path().filename();
    name.resize(std::min(name.size(), name.find('+')));  // of a container
    absl::string_view id = name;                         // "12-0-1", if it is a task of this node
    const bool ours = absl::ConsumePrefix(&id, config_.node_name() + "-") &&
                      std::count(id.begin(), id.end(), '-') == 2;
    if (ours && !kept.contains(name)) unlink(link.path().c_str());
  }
}

}  // namespace berth
