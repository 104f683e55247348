// Live: the changes of the cluster for all pages of one session, from one Watch.
//
//   berthd ──Watch──► next_ (coalesced) ──twice a second──► every page, and kept_
//
// docs/developers/web.md says what the events are. Thread-safe.
#ifndef BERTH_CLIENTS_WEB_LIVE_H_
#define BERTH_CLIENTS_WEB_LIVE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "berth/v1/watch.pb.h"
#include "berth/web/v1/api.pb.h"
#include "clients/web/event_stream.h"
#include "clients/web/upstream.h"

namespace berth::web {

class Live : public std::enable_shared_from_this<Live> {
 public:
  explicit Live(std::shared_ptr<Upstream> upstream) : upstream_(std::move(upstream)) {}

  // A page begins to listen. `last_id`: of the last message that it got, or "". `now`: steady.
  void Add(const std::shared_ptr<EventStream>& page, const std::string& last_id, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Called several times a second: sends what is due, and opens or ends the watch.
  void Tick(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);
  // The session has ended: tells the pages, and ends their streams.
  void End(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  size_t pages() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Sent before; for pages that connect again.
  struct Kept {
    uint64_t after = 0;  // the message before ended with this revision
    uint64_t revision = 0;
    std::string text;
  };

  void OpenWatch() ABSL_LOCKS_EXCLUDED(mutex_);
  void OnMessage(uint64_t watch, const std::string& bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnd(uint64_t watch, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void Note(const berth::v1::ChangeEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendChanges(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetState(bool live, const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendAll(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Repeat(EventStream& page, const std::string& last_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Keep(uint64_t after, const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string IdOf(uint64_t revision) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string StateText() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<Upstream> upstream_;
  mutable absl::Mutex mutex_;
  std::vector<std::shared_ptr<EventStream>> pages_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<UpstreamStream> stream_ ABSL_GUARDED_BY(mutex_);  // null: no watch
  uint64_t watch_ ABSL_GUARDED_BY(mutex_) = 0;  // counts watches; callbacks of old ones do nothing
  bool live_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::string why_ ABSL_GUARDED_BY(mutex_) = "connecting";
  uint64_t revision_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t incarnation_ ABSL_GUARDED_BY(mutex_) = 0;
  // Not sent yet. By what changed: of each only the last change.
  std::map<std::string, berth::v1::ChangeEvent> next_ ABSL_GUARDED_BY(mutex_);
  int64_t more_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t sent_revision_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration sent_ ABSL_GUARDED_BY(mutex_);
  absl::Duration alive_ ABSL_GUARDED_BY(mutex_);
  absl::Duration open_at_ ABSL_GUARDED_BY(mutex_);
  absl::Duration used_ ABSL_GUARDED_BY(mutex_);  // when there was a page
  std::deque<Kept> kept_ ABSL_GUARDED_BY(mutex_);
  size_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace berth::web

#endif  // BERTH_CLIENTS_WEB_LIVE_H_
