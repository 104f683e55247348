// From the log to watchers: the events of a turn as berth.v1.ChangeEvents. The log carries names
// and states with each event (storage/event_labels.h), so nothing is looked up, and old turns
// render as they did when they were new.
#ifndef BERTH_SERVER_CONVERT_CHANGE_H_
#define BERTH_SERVER_CONVERT_CHANGE_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "berth/store/v1/store.pb.h"
#include "berth/v1/watch.pb.h"

namespace berth {

// Which events one watcher wants.
class ChangeFilter {
 public:
  explicit ChangeFilter(const v1::WatchRequest& request);

  bool WantsJob(const std::string& name) const {
    return jobs_ && (names_.empty() || names_.contains(name));
  }
  bool WantsNodes() const { return nodes_; }
  bool WantsQueues() const { return queues_; }
  bool WantsHyperNodes() const { return hyper_nodes_; }

 private:
  bool jobs_, nodes_, queues_, hyper_nodes_;
  absl::flat_hash_set<std::string> names_;
};

// Appends the events that pass `filter`, in order. `from`: for each, the event of the turn; may be
// null.
void RenderChanges(const store::v1::LogTurn& turn, const ChangeFilter& filter,
                   google::protobuf::RepeatedPtrField<v1::ChangeEvent>* out,
                   std::vector<const store::v1::LogEvent*>* from = nullptr);

}  // namespace berth

#endif  // BERTH_SERVER_CONVERT_CHANGE_H_
