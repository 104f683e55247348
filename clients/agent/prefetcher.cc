#include "clients/agent/prefetcher.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/agent/disk.h"
#include "clients/agent/image_registries.h"
#include "clients/agent/images/image_cache.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr size_t kMaxWaiting = 16;  // more are dropped: their tasks pull for themselves
constexpr size_t kMaxImages = 256;  // of a message

TaskId IdOf(const v1::Prefetch& request) { return {.job_uid = request.job_uid()}; }

}  // namespace

absl::StatusOr<std::unique_ptr<Prefetcher>> Prefetcher::Create(
    std::shared_ptr<const Isolation> isolation, const std::string& image_program,
    std::string directory) {
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return ErrnoStatus(errno, absl::StrCat("create ", directory));
  unlink((directory + kRegistryAuth).c_str());  // of a pull that the last agent did not end
  std::unique_ptr<Prefetcher> prefetcher(
      new Prefetcher(std::move(isolation), std::move(directory)));
  auto pulls = ImageUnpacker::Create(image_program);
  if (!pulls.ok()) return pulls.status();
  prefetcher->pulls_ = *std::move(pulls);
  return prefetcher;
}

v1::NodeImages Prefetcher::Images() {
  v1::NodeImages images;
  images.set_default_registry(isolation_->DefaultRegistry());
  for (const CachedImage& one : ListImages(isolation_->ImageCache())) {
    if (static_cast<size_t>(images.images_size()) == kMaxImages) break;
    v1::NodeImage* image = images.add_images();
    image->set_image(one.image);
    image->set_digest(one.digest);
    image->set_bytes(one.bytes);
  }
  return images;
}

void Prefetcher::Prefetch(const v1::Prefetch& request) {
  const bool known = std::any_of(waiting_.begin(), waiting_.end(), [&](const v1::Prefetch& other) {
    return other.job_uid() == request.job_uid() &&
           other.launch().image() == request.launch().image();
  });
  if (known || waiting_.size() >= kMaxWaiting) return;
  waiting_.push_back(request);
  BeginNext();
}

// An error is told by the task's own preparation, if it comes.
void Prefetcher::BeginNext() {
  while (!pulling_ && !waiting_.empty()) {
    const v1::TaskLaunch& launch = waiting_.front().launch();
    auto request = isolation_->UnpackRequest(IdOf(waiting_.front()), launch, directory_);
    if (request.ok() && request->has_value()) {
      (*request)->clear_link();
      (*request)->set_background(true);
      pulling_ = true;
      LogInfo("pulling an image in advance",
              {{"job", waiting_.front().job_uid()}, {"image", launch.image()}});
      pulls_->Begin(IdOf(waiting_.front()), launch.image(), **std::move(request));
      Poll();  // it may have failed at once
      return;
    }
    if (!request.ok())
      LogInfo("an image is not pulled in advance",
              {{"image", launch.image()}, {"error", request.status()}});
    waiting_.pop_front();
  }
}

void Prefetcher::Poll() {
  const std::vector<ImageUnpacker::Result> results = pulls_->Poll();
  pulls_->TakeProgress();
  if (results.empty() || !pulling_) return;
  if (!results.front().status.ok())
    LogInfo("an image was not pulled in advance",
            {{"image", waiting_.front().launch().image()}, {"error", results.front().status}});
  unlink((directory_ + kRegistryAuth).c_str());
  waiting_.pop_front();
  pulling_ = false;
  BeginNext();
}

}  // namespace berth
