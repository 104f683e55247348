// EventStream: an answer that goes on, as server-sent events. A bounded buffer between whoever
// writes, from any thread, and the connection, which takes what there is and sleeps otherwise.
#ifndef BERTH_CLIENTS_WEB_EVENT_STREAM_H_
#define BERTH_CLIENTS_WEB_EVENT_STREAM_H_

#include <cstddef>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

struct MHD_Connection;

namespace berth::web {

// "id: ID\nevent: NAME\ndata: DATA\n\n"; without the first line if `id` is empty. `data` is one
// line.
std::string EventText(absl::string_view name, absl::string_view data, absl::string_view id = "");

// Thread-safe.
class EventStream {
 public:
  EventStream() = default;
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  // Called without locks: `drained` when the connection has taken everything, `gone` once when the
  // connection has ended. Set before the stream is given to the server.
  void OnDrained(std::function<void()> drained) { drained_ = std::move(drained); }
  void OnGone(std::function<void()> gone) { gone_ = std::move(gone); }

  // False: it has ended, or the page does not read, and more than kEventStreamBytes would wait.
  bool Write(absl::string_view text) ABSL_LOCKS_EXCLUDED(mutex_);
  // What was written is still sent.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);
  bool ended() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The connection has ended.
  bool gone() const ABSL_LOCKS_EXCLUDED(mutex_);

  // For the server's thread.
  static constexpr long kNothingYet = 0;
  static constexpr long kEnd = -1;
  // Bytes, kEnd, or kNothingYet: then the connection is suspended until there is something.
  long Take(MHD_Connection* connection, char* buffer, size_t size) ABSL_LOCKS_EXCLUDED(mutex_);
  void ConnectionEnded() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::function<void()> drained_;
  std::function<void()> gone_;
  mutable absl::Mutex mutex_;
  std::string waiting_ ABSL_GUARDED_BY(mutex_);
  MHD_Connection* suspended_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool gone_already_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace berth::web

#endif  // BERTH_CLIENTS_WEB_EVENT_STREAM_H_
