// AgentGateway: images of nodes and tasks.
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/controllers/agent_gateway.h"
#include "server/controllers/dispatcher.h"
#include "server/controllers/launch.h"
#include "server/validation/lifecycle.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr int kMaxReportedImages = 256;
constexpr size_t kMaxImageName = 512;
constexpr size_t kMaxDigest = 128;
constexpr size_t kMaxHost = 256;

bool IsValid(const v1::NodeImages& images) {
  if (images.images_size() > kMaxReportedImages) return false;
  if (images.default_registry().size() > kMaxHost) return false;
  for (const v1::NodeImage& image : images.images()) {
    if (image.image().empty() || image.image().size() > kMaxImageName ||
        image.digest().size() > kMaxDigest || image.bytes() < 0)
      return false;
  }
  return true;
}

}  // namespace

// False: it is prepared again, in the image that the job's other tasks have.
bool AgentGateway::CountsImage(Turn& turn, const TaskReported& report,
                               const v1::TaskReport& message) {
  const ImageBook::Verdict verdict = images_.Note(turn.state(), message);
  if (report.state != ReportState::kPrepared || verdict == ImageBook::Verdict::kCounts) return true;
  if (verdict == ImageBook::Verdict::kOther) {
    LogInfo("the tag of an image has moved between the pulls of two tasks",
            {{"job", report.task.job.value},
             {"task", report.task.task},
             {"image", message.image()},
             {"digest", message.image_digest()}});
    PrepareAgain(turn, {report.task});
  }
  return false;
}

void AgentGateway::PrepareAgain(Turn& turn, const std::vector<TaskKey>& tasks) {
  LaunchCapture capture(turn.state(), &images_);
  for (const TaskKey& key : tasks) {
    const Job* job = turn.state().jobs().Find(key.job);
    const bool waits = job != nullptr && key.task < job->tasks.size() &&
                       job->tasks[key.task].state == TaskState::kBound;
    if (waits) capture.AddByState(key);
  }
  turn.OnDurable(
      [this, orders = capture.Take()]() mutable { dispatcher_->Send(std::move(orders)); });
}

// Tasks that were prepared before it was known what their peers have: their agents report again.
void AgentGateway::RetryImages() {
  if (!images_.holds()) return;
  const absl::Status posted = loop_->Post(
      [this](Turn& turn) {
        const std::vector<TaskKey> held = images_.TakeHeld(loop_->clock().Steady());
        if (!held.empty()) PrepareAgain(turn, held);
      },
      CommandClass::kEssential);
  if (!posted.ok()) LogWarn("held tasks are not tried now", {{"error", posted}});
}

void AgentGateway::OnImages(SessionId id, const Session& session, v1::NodeImages images) {
  if (!IsValid(images)) {
    ++counters_.invalid_messages;
    return Refuse(session.link, v1::Refused::INVALID, "not a list of images of a node");
  }
  node_images_.Note(session.node, session.epoch, images);
  RecordImages(session.node);
  auto shared = std::make_shared<const v1::NodeImages>(std::move(images));
  absl::MutexLock lock(&mutex_);
  const auto found = sessions_.find(id);
  if (found != sessions_.end()) found->second.images = std::move(shared);
}

// What the store cannot hold yet, or the loop does not take now, the next heartbeat tries again.
void AgentGateway::RecordImages(NodeId node) {
  if (!node_images_.Due(node, loop_->clock().Steady())) return;
  if (options_.store_format() < kFormatOfSeries) return;
  const absl::Status posted = loop_->Post(
      [this, node](Turn& turn) { node_images_.Record(turn, node, loop_->clock().Steady()); },
      CommandClass::kEssential);
  if (!posted.ok())
    LogWarn("the images of a node are not recorded now", {{"node", node.value}, {"error", posted}});
}

std::shared_ptr<const v1::NodeImages> AgentGateway::ImagesOf(NodeId node) const {
  absl::MutexLock lock(&mutex_);
  const auto current = by_node_.find(node);
  return current == by_node_.end() ? nullptr : sessions_.at(current->second).images;
}

bool AgentGateway::TakesPrefetch(NodeId node) const {
  absl::MutexLock lock(&mutex_);
  const auto current = by_node_.find(node);
  return current != by_node_.end() && sessions_.at(current->second).takes_prefetch;
}

}  // namespace berth
