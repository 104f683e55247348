// ReadView: how a handler reads the state. It reads in bounded steps, so that no list stalls the
// loop, and responds only when everything it saw is durable: a crash cannot revoke a response.
//
//   ReadView view(loop);
//   for (bool more = true; more;) {
//     more = view.Step([&](const ClusterState& state) { return AppendPage(state, &response); });
//   }
//   view.Answer([reactor](absl::Status status) { reactor->Finish(ToGrpcStatus(status)); });
//
// Between two steps the state may change: a list over several steps is not a snapshot. One view
// belongs to one thread. The loop outlives it.
#ifndef BERTH_SERVER_READS_READ_VIEW_H_
#define BERTH_SERVER_READS_READ_VIEW_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "server/loop/loop.h"

namespace berth {

class ReadView {
 public:
  explicit ReadView(Loop& loop) : loop_(&loop) {}

  // Calls look(state) under the reader lock and returns its result: values, never pointers into
  // the state. At most kMaxRowsPerStep rows.
  template <class Look>
  auto Step(Look&& look) {
    return loop_->Read([&](const ClusterState& state, uint64_t revision) {
      revision_ = std::max(revision_, revision);
      return look(state);
    });
  }

  // Of the newest state seen; 0 before the first step.
  uint64_t revision() const { return revision_; }

  // Runs `answer` once, when everything that was seen is durable: often at once and on this thread,
  // otherwise on the thread that made it durable, where it must not block. UNAVAILABLE if the disk
  // does not keep up.
  void Answer(ReaderEffect answer, absl::Duration patience = kDurablePatience) {
    loop_->WhenDurable(revision_, std::move(answer), patience);
  }

 private:
  Loop* loop_;
  uint64_t revision_ = 0;
};

}  // namespace berth

#endif  // BERTH_SERVER_READS_READ_VIEW_H_
