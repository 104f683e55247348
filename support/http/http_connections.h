// HttpConnections: the open connections of an HttpServer, each with a deadline that nothing the
// client sends or reads can extend. A thread of its own shuts those that are late.
//
// More than kHttpConnections of them, or more than kHttpAnswerBytes of answers that clients have
// not taken, shut the oldest connection. The newest stays, because it may be the only one whose
// client is in earnest.
#ifndef BERTH_SUPPORT_HTTP_HTTP_CONNECTIONS_H_
#define BERTH_SUPPORT_HTTP_HTTP_CONNECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace berth {

inline constexpr size_t kHttpConnections = 256;
inline constexpr size_t kHttpAnswerBytes = size_t{64} << 20;          // not yet taken, all together
inline constexpr absl::Duration kHttpRequestTime = absl::Seconds(2);  // for the whole request
inline constexpr absl::Duration kHttpAnswerTime = absl::Seconds(10);  // for taking the whole answer

// Thread-safe. A connection is named by its socket, which stays open from Opened until Closed
// returns.
class HttpConnections {
 public:
  HttpConnections();
  ~HttpConnections();
  HttpConnections(const HttpConnections&) = delete;
  HttpConnections& operator=(const HttpConnections&) = delete;

  void Opened(int fd) ABSL_LOCKS_EXCLUDED(mutex_);
  // Its answer is being made, which has no deadline.
  void Asked(int fd) ABSL_LOCKS_EXCLUDED(mutex_);
  void Answered(int fd, size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void Closed(int fd) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Connection {
    uint64_t number = 0;  // the older, the smaller
    absl::Duration deadline;
    size_t answer_bytes = 0;
    bool shut = false;  // and not closed yet
  };
  using Connections = std::map<int, Connection>;

  void Watch() ABSL_LOCKS_EXCLUDED(mutex_);
  void ShutLate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShutOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Shut(Connections::value_type& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  absl::CondVar changed_;  // a deadline, or stopping_
  Connections connections_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;          // those that are not shut
  size_t answer_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of those
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread watcher_;
};

}  // namespace berth

#endif  // BERTH_SUPPORT_HTTP_HTTP_CONNECTIONS_H_
