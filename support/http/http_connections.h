// HttpConnections: the open connections of an HttpServer. Each has a deadline that the client
// cannot extend by sending or reading. A separate thread shuts connections that exceed it.
//
// If there are more than HttpLimits::connections, or clients have not read more than answer_bytes
// of responses, the oldest connection is shut. The newest one stays: it may be the only honest
// client.
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
inline constexpr size_t kHttpAnswerBytes = size_t{64} << 20;          // unread by clients, in total
inline constexpr absl::Duration kHttpRequestTime = absl::Seconds(2);  // for the whole request
inline constexpr absl::Duration kHttpAnswerTime = absl::Seconds(10);  // for reading the response

struct HttpLimits {
  size_t connections = kHttpConnections;
  size_t answer_bytes = kHttpAnswerBytes;
  absl::Duration request_time = kHttpRequestTime;
  absl::Duration answer_time = kHttpAnswerTime;
};

// Thread-safe. A connection is identified by its socket, which stays open from Opened until Closed
// returns.
class HttpConnections {
 public:
  explicit HttpConnections(const HttpLimits& limits = {});
  ~HttpConnections();
  HttpConnections(const HttpConnections&) = delete;
  HttpConnections& operator=(const HttpConnections&) = delete;

  void Opened(int fd) ABSL_LOCKS_EXCLUDED(mutex_);
  // Its response is being computed, which has no deadline.
  void Asked(int fd) ABSL_LOCKS_EXCLUDED(mutex_);
  void Answered(int fd, size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void Closed(int fd) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Connection {
    uint64_t number = 0;  // smaller for older connections
    absl::Duration deadline;
    size_t answer_bytes = 0;
    bool shut = false;  // but not closed yet
  };
  using Connections = std::map<int, Connection>;

  void Watch() ABSL_LOCKS_EXCLUDED(mutex_);
  void ShutLate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShutOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Shut(Connections::value_type& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const HttpLimits limits_;
  absl::Mutex mutex_;
  absl::CondVar changed_;  // a deadline, or stopping_
  Connections connections_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;          // excluding shut ones
  size_t answer_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the open ones
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread watcher_;
};

}  // namespace berth

#endif  // BERTH_SUPPORT_HTTP_HTTP_CONNECTIONS_H_
