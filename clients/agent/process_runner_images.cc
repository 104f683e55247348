// ProcessRunner: images are pulled and unpacked before a task is prepared.
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/agent/image_registries.h"
#include "clients/agent/process_runner.h"
#include "clients/agent/task_containers.h"

namespace berth {

absl::Status ProcessRunner::MakeReady(const TaskId& id, const v1::TaskLaunch& launch,
                                      TaskEvent prepared) {
  Unpacking& unpacking = unpacking_[id];
  unpacking = {.prepared = std::move(prepared), .launch = launch, .image = 0};
  if (absl::Status status = GetNextImage(id, unpacking); !status.ok()) {
    unpacking_.erase(id);
    return status;
  }
  PollImages();  // it may have failed at once
  return absl::OkStatus();
}

std::string ProcessRunner::ImageDirectory(const TaskId& id, const Unpacking& unpacking) const {
  if (unpacking.image == 0) return Directory(id);
  return ContainerDirectory(Directory(id), unpacking.launch.containers(unpacking.image - 1).name());
}

// From `image` on. The task is prepared once there is none left.
absl::Status ProcessRunner::GetNextImage(const TaskId& id, Unpacking& unpacking) {
  const v1::TaskLaunch& task = unpacking.launch;
  for (; unpacking.image <= task.containers_size(); ++unpacking.image) {
    const v1::TaskLaunch launch =
        unpacking.image == 0 ? task : LaunchOf(task, task.containers(unpacking.image - 1));
    auto request = options_.isolation->UnpackRequest(id, launch, ImageDirectory(id, unpacking));
    if (!request.ok()) return request.status();
    if (request->has_value())
      return images_->Begin(id, launch.image(), **std::move(request)), absl::OkStatus();
  }
  events_.push_back(std::move(unpacking.prepared));
  unpacking_.erase(id);
  return absl::OkStatus();
}

void ProcessRunner::OnImage(const ImageUnpacker::Result& result, Unpacking& unpacking) {
  const TaskId id = result.id;
  unlink((ImageDirectory(id, unpacking) + kRegistryAuth).c_str());
  absl::Status status = result.status;
  if (status.ok()) {
    TaskEvent& prepared = unpacking.prepared;
    if (unpacking.image == 0) {
      prepared.image_digest = result.digest;
    } else if (!result.digest.empty()) {
      v1::ImageDigest& image = prepared.container_images.emplace_back();
      image.set_image(unpacking.launch.containers(unpacking.image - 1).image());
      image.set_digest(result.digest);
    }
    ++unpacking.image;
    status = GetNextImage(id, unpacking);
  }
  if (status.ok()) return;
  unpacking_.erase(id);
  Refuse(id, status);
}

void ProcessRunner::PollImages() {
  for (auto results = images_->Poll(); !results.empty(); results = images_->Poll()) {
    for (const ImageUnpacker::Result& result : results) {
      const auto found = unpacking_.find(result.id);
      if (found != unpacking_.end())
        OnImage(result, found->second);
      else
        options_.isolation->Remove(result.id);  // discarded in the meantime: release its image
    }
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
