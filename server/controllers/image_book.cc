#include "server/controllers/image_book.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"

namespace berth {
namespace {

constexpr size_t kMaxImageName = 512;
constexpr size_t kDigestBytes = 7 + 64;
constexpr int kSweptJobs = 2;  // for each report
constexpr absl::Duration kRetry = absl::Seconds(1);

constexpr int kMaxContainerImages = 16;

bool IsKnown(const v1::ImageDigest& image) {
  return image.digest().size() == kDigestBytes && absl::StartsWith(image.digest(), "sha256:") &&
         !image.image().empty() && image.image().size() <= kMaxImageName;
}

// Of the task and its containers.
std::vector<v1::ImageDigest> ImagesOf(const v1::TaskReport& report) {
  std::vector<v1::ImageDigest> images(1);
  images[0].set_image(report.image());
  images[0].set_digest(report.image_digest());
  for (int i = 0; i < std::min(report.container_images_size(), kMaxContainerImages); ++i)
    images.push_back(report.container_images(i));
  std::erase_if(images, [](const v1::ImageDigest& image) { return !IsKnown(image); });
  return images;
}

// Its digest was compared with the others'.
bool Counted(TaskState state) {
  return state == TaskState::kPrepared || state == TaskState::kStarting ||
         state == TaskState::kRunning;
}

}  // namespace

bool ImageBook::Lives(const ClusterState& state, TaskKey key, uint32_t attempt) {
  const Job* job = state.jobs().Find(key.job);
  if (job == nullptr || key.task >= job->tasks.size()) return false;
  const Task& task = job->tasks[key.task];
  return task.attempt == attempt && Occupies(task.state) && task.state != TaskState::kReleasing;
}

// A node that has not registered since this server leads may have members whose digests are not
// known.
bool ImageBook::KnowsOthers(const Job& job, uint32_t task) const {
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    const Task& other = job.tasks[i];
    if (i != task && Counted(other.state) && !nodes_.contains(other.node)) return false;
  }
  return true;
}

ImageBook::Verdict ImageBook::Note(const ClusterState& state, const v1::TaskReport& report) {
  ForgetSome(state);
  const TaskKey key{JobId{report.key().job_uid()}, report.key().task()};
  Verdict verdict = Verdict::kCounts;
  for (const v1::ImageDigest& image : ImagesOf(report)) {
    if (!Lives(state, key, report.key().attempt())) break;
    const Verdict one = NoteOne(state, key, report.key().attempt(), image);
    if (verdict == Verdict::kCounts) verdict = one;
  }
  return verdict;
}

ImageBook::Verdict ImageBook::NoteOne(const ClusterState& state, TaskKey key, uint32_t attempt,
                                      const v1::ImageDigest& image) {
  const Job& job = state.jobs().At(key.job);
  const bool counted = Counted(job.tasks[key.task].state);
  Pin* pin = Find(key.job, image.image());
  if (pin != nullptr && pin->digest != image.digest()) {
    Forget(state, key.job);  // maybe those with the other digest are over
    pin = Find(key.job, image.image());
    if (pin != nullptr) return counted ? Verdict::kCounts : Verdict::kOther;
  }
  if (pin == nullptr) {
    if (!counted && !KnowsOthers(job, key.task)) {
      held_.insert(key);
      holds_ = true;
      return Verdict::kEarly;
    }
    pin = &jobs_[key.job][image.image()];
    pin->digest = image.digest();
  }
  pin->tasks[key.task] = attempt;
  return Verdict::kCounts;
}

ImageBook::Pin* ImageBook::Find(JobId id, const std::string& image) {
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return nullptr;
  const auto pin = job->second.find(image);
  return pin == job->second.end() ? nullptr : &pin->second;
}

void ImageBook::Forget(const ClusterState& state, JobId id) {
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return;
  for (auto& [image, pin] : job->second) {
    std::erase_if(pin.tasks, [&](const auto& task) {
      return !Lives(state, {id, task.first}, task.second);
    });
  }
  std::erase_if(job->second, [](const auto& pin) { return pin.second.tasks.empty(); });
  if (job->second.empty()) jobs_.erase(job);
}

// So that the book does not grow with jobs that are over: each report looks at some.
void ImageBook::ForgetSome(const ClusterState& state) {
  for (int i = 0; i < kSweptJobs && !jobs_.empty(); ++i) {
    auto next = jobs_.upper_bound(swept_);
    if (next == jobs_.end()) next = jobs_.begin();
    swept_ = next->first;
    Forget(state, swept_);
  }
}

ImageDigests ImageBook::DigestsOf(const ClusterState& state, JobId id) const {
  ImageDigests digests;
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return digests;
  for (const auto& [image, pin] : job->second) {
    for (const auto& [task, attempt] : pin.tasks) {
      if (!Lives(state, {id, task}, attempt)) continue;
      digests[image] = pin.digest;
      break;
    }
  }
  return digests;
}

std::vector<TaskKey> ImageBook::TakeHeld(absl::Duration steady) {
  if (held_.empty() || steady < retry_at_) return {};
  retry_at_ = steady + kRetry;
  holds_ = false;
  const std::set<TaskKey> held = std::exchange(held_, {});
  return {held.begin(), held.end()};
}

void ImageBook::Clear() {
  nodes_.clear();
  jobs_.clear();
  held_.clear();
  holds_ = false;
}

}  // namespace berth
