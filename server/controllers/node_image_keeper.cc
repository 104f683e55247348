#include "server/controllers/node_image_keeper.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/model/image_id.h"
#include "support/log.h"

namespace berth {
namespace {

// Of the images used last, if there are more names than a node may have.
std::vector<ImageId> ReportedIdsOf(const v1::NodeImages& report) {
  std::vector<ImageId> ids;
  for (const v1::NodeImage& image : report.images()) {
    const std::vector<ImageId> some = ImageIdsOf(image.image(), report.default_registry());
    if (ids.size() + some.size() > kMaxNodeImages) break;
    ids.insert(ids.end(), some.begin(), some.end());
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::vector<ImageId> ImagesWithout(const std::vector<ImageId>& images,
                                   const std::vector<ImageId>& others) {
  std::vector<ImageId> rest;
  std::set_difference(images.begin(), images.end(), others.begin(), others.end(),
                      std::back_inserter(rest));
  return rest;
}

}  // namespace

void NodeImageKeeper::Note(NodeId node, uint64_t epoch, const v1::NodeImages& images) {
  std::vector<ImageId> ids = ReportedIdsOf(images);
  absl::MutexLock lock(&mutex_);
  Report& report = reports_[node];
  if (epoch < report.epoch) return;
  report.epoch = epoch;
  report.waits = true;
  report.images = std::move(ids);
}

// When it may have the next event stays, so that connecting again gains nothing.
void NodeImageKeeper::Forget(NodeId node, uint64_t epoch) {
  absl::MutexLock lock(&mutex_);
  const auto found = reports_.find(node);
  if (found == reports_.end() || found->second.epoch != epoch) return;
  found->second.waits = false;
  found->second.images = {};
}

bool NodeImageKeeper::Due(NodeId node, absl::Duration now) const {
  absl::MutexLock lock(&mutex_);
  const auto found = reports_.find(node);
  return found != reports_.end() && found->second.waits && found->second.next <= now;
}

void NodeImageKeeper::Record(Turn& turn, NodeId id, absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  const auto found = reports_.find(id);
  if (found == reports_.end()) return;
  Report& report = found->second;
  const Node* node = turn.state().nodes().Find(id);
  if (node == nullptr) {
    reports_.erase(found);
    return;
  }
  if (!report.waits || report.next > now || node->status.epoch != report.epoch) return;
  report.waits = false;
  const std::vector<ImageId> images = std::exchange(report.images, {});
  NodeImagesChanged event{.id = id,
                          .gained = ImagesWithout(images, node->images),
                          .lost = ImagesWithout(node->images, images)};
  if (event.gained.empty() && event.lost.empty()) return;
  report.next = now + kInterval;
  const absl::Status status = turn.Emit(std::move(event));
  if (!status.ok())
    LogWarn("the images of a node are not recorded",
            {{"node", node->spec.name}, {"error", status}});
}

}  // namespace berth
