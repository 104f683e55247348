// What the images of live tasks mean, so that all tasks of a job run the same. A tag may move
// between the pulls of two members: the first digest that is reported counts, and a member with
// another one is prepared again with that (docs/developers/images.md).
//
// In memory only: agents repeat the digests of all their tasks when they register. Until all nodes
// with members of a job have registered, no new digest counts for it.
#ifndef BERTH_SERVER_CONTROLLERS_IMAGE_BOOK_H_
#define BERTH_SERVER_CONTROLLERS_IMAGE_BOOK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "berth/v1/agent.pb.h"
#include "core/model/cluster_state.h"

namespace berth {

// By name, as the job wrote it: "sha256:HEX".
using ImageDigests = std::map<std::string, std::string>;

// Of the loop's thread, but for `holds`.
class ImageBook {
 public:
  enum class Verdict : uint8_t {
    kCounts,
    kOther,  // the job's other tasks have another digest
    kEarly,  // nobody knows yet what they have
  };

  // The node registered, and its Hello was noted.
  void NoteNode(NodeId node) { nodes_.insert(node); }
  // The report, of the current attempt, says what the image of a live task means. Another verdict
  // than kCounts: it is not prepared yet. Then its Prepare must be repeated, with DigestsOf; with
  // kEarly a little later.
  Verdict Note(const ClusterState& state, const v1::TaskReport& report);
  // What the images of the job's live tasks mean.
  ImageDigests DigestsOf(const ClusterState& state, JobId job) const;

  // Whether reports came too early.
  bool holds() const { return holds_; }
  // Their tasks, at most once a second.
  std::vector<TaskKey> TakeHeld(absl::Duration steady);
  // Forgets all: another server has led in the meantime.
  void Clear();

  size_t jobs() const { return jobs_.size(); }

 private:
  struct Pin {
    std::string digest;
    std::map<uint32_t, uint32_t> tasks;  // task -> attempt
  };
  using Pins = std::map<std::string, Pin>;  // by image

  Verdict NoteOne(const ClusterState& state, TaskKey key, uint32_t attempt,
                  const v1::ImageDigest& image);
  static bool Lives(const ClusterState& state, TaskKey task, uint32_t attempt);
  bool KnowsOthers(const Job& job, uint32_t task) const;
  Pin* Find(JobId job, const std::string& image);
  void Forget(const ClusterState& state, JobId job);
  void ForgetSome(const ClusterState& state);

  absl::flat_hash_set<NodeId> nodes_;  // that have registered with this server
  std::map<JobId, Pins> jobs_;
  JobId swept_;  // the last job that was looked at for tasks that are over
  std::set<TaskKey> held_;
  absl::Duration retry_at_;
  std::atomic<bool> holds_ = false;
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_IMAGE_BOOK_H_
