#include "clients/web/event_stream.h"

#include <microhttpd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/web/bounds.h"

namespace berth::web {

std::string EventText(absl::string_view name, absl::string_view data, absl::string_view id) {
  const std::string first = id.empty() ? "" : absl::StrCat("id: ", id, "\n");
  return absl::StrCat(first, "event: ", name, "\ndata: ", data, "\n\n");
}

bool EventStream::Write(absl::string_view text) {
  absl::MutexLock lock(&mutex_);
  if (closed_ || gone_already_ || text.size() > kEventStreamBytes - waiting_.size()) return false;
  waiting_.append(text.data(), text.size());
  Wake();
  return true;
}

void EventStream::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  Wake();
}

bool EventStream::ended() const {
  absl::MutexLock lock(&mutex_);
  return closed_ || gone_already_;
}

bool EventStream::gone() const {
  absl::MutexLock lock(&mutex_);
  return gone_already_;
}

void EventStream::Wake() {
  if (suspended_ != nullptr) MHD_resume_connection(std::exchange(suspended_, nullptr));
}

long EventStream::Take(MHD_Connection* connection, char* buffer, size_t size) {
  bool drained = false;
  long taken = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (waiting_.empty()) {
      if (closed_) return kEnd;
      suspended_ = connection;
      MHD_suspend_connection(connection);
      return kNothingYet;
    }
    const size_t count = std::min(size, waiting_.size());
    std::memcpy(buffer, waiting_.data(), count);
    waiting_.erase(0, count);
    drained = waiting_.empty();
    taken = static_cast<long>(count);
  }
  if (drained && drained_ != nullptr) drained_();
  return taken;
}

void EventStream::ConnectionEnded() {
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(gone_already_, true)) return;
    suspended_ = nullptr;
    waiting_.clear();
  }
  if (gone_ != nullptr) gone_();
}

}  // namespace berth::web
