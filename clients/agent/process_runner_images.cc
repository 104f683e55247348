// ProcessRunner: images are pulled and unpacked before a task is prepared.
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/agent/image_registries.h"
#include "clients/agent/process_runner.h"

namespace berth {

absl::Status ProcessRunner::MakeReady(const TaskId& id, const v1::TaskLaunch& launch,
                                      TaskEvent prepared) {
  auto image = options_.isolation->UnpackRequest(id, launch, Directory(id));
  if (!image.ok()) return image.status();
  if (image->has_value()) {
    unpacking_[id] = std::move(prepared);
    images_->Begin(id, launch.image(), **std::move(image));
    PollImages();  // it may have failed at once
  } else {
    events_.push_back(std::move(prepared));
  }
  return absl::OkStatus();
}

void ProcessRunner::PollImages() {
  for (const ImageUnpacker::Result& result : images_->Poll()) {
    const auto found = unpacking_.find(result.id);
    if (found == unpacking_.end()) {
      options_.isolation->Remove(result.id);  // discarded in the meantime: release its image
      continue;
    }
    TaskEvent prepared = std::move(found->second);
    prepared.image_digest = result.digest;
    unpacking_.erase(found);
    unlink((Directory(result.id) + kRegistryAuth).c_str());
    if (result.status.ok())
      events_.push_back(std::move(prepared));
    else
      Refuse(result.id, result.status);
  }
  for (const ImageUnpacker::Progress& progress : images_->TakeProgress()) {
    if (!unpacking_.contains(progress.id)) continue;
    TaskEvent event;
    event.id = progress.id;
    event.kind = TaskEvent::Kind::kPreparing;
    event.message = progress.bytes < progress.of
                        ? absl::StrCat("pulling the image: ", progress.bytes >> 20, " of ",
                                       progress.of >> 20, " MiB")
                        : "unpacking the image";
    events_.push_back(std::move(event));
  }
}

void ProcessRunner::CleanUp(const std::set<TaskId>& tasks) {
  options_.isolation->RemoveUnusedSharedMemory();
  auto request = options_.isolation->CleanupRequest();
  if (!request.has_value()) return;
  options_.isolation->ReleaseImagesExcept(tasks);
  images_->CleanUp(*std::move(request));
}

}  // namespace berth
