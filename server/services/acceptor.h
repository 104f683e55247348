// Acceptor: listens for berthd's clients and agents, and hands their connections to gRPC.
//
// gRPC's own listener has no limits, and when the process runs out of descriptors it gives up for
// good: nobody can connect any more, even after everybody has left. This one rejects excess
// connections, and so keeps descriptors for the store's files.
#ifndef BERTH_SERVER_SERVICES_ACCEPTOR_H_
#define BERTH_SERVER_SERVICES_ACCEPTOR_H_

#include <grpcpp/server_builder.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/services/connections.h"
#include "support/listen.h"

namespace berth {

class Acceptor {
 public:
  struct Options {
    ConnectionLimits limits;
    // TCP user timeout: maximum time for data to stay unacknowledged; 0: none
    absl::Duration user_timeout;
  };
  // "ADDRESS:PORT", port 0 for a free one. 0.0.0.0 and [::] mean all addresses, IPv4 and IPv6.
  // UNAVAILABLE naming the address if it is in use.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(const std::string& address,
                                                          const Options& options);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  int port() const { return port_; }
  // Call when gRPC's server runs.
  void Start(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server);
  // Accepts no more; call before gRPC's server is shut down. Idempotent.
  void Stop();
  // After Stop: closes connections that are still open. Their calls end with UNAVAILABLE at the
  // client. gRPC would end them with CANCELLED, which clients attribute to themselves.
  void CutConnections() ABSL_LOCKS_EXCLUDED(mutex_);
  // Closes the connection of this client, and refuses others of its address for `ban`. Thread-safe.
  void Cut(const ClientEnd& end, absl::Duration ban) ABSL_LOCKS_EXCLUDED(mutex_);

  // Closes the connection of this client, which may connect again. Thread-safe.
  void End(const ClientEnd& end) ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t refused() const { return refused_.load(); }

 private:
  Acceptor(const Options& options, Listeners listeners);
  void Run();
  void Accept(int listener);
  bool Admit(int fd, const sockaddr_storage& address) ABSL_LOCKS_EXCLUDED(mutex_);
  void Complain(const char* what, uint64_t count) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  Connections connections_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server_;
  std::vector<int> listeners_;
  const int port_;
  int stop_fd_ = -1;
  std::atomic<uint64_t> refused_{0};
  absl::Duration complained_ = -absl::InfiniteDuration();  // steady
  std::thread thread_;
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_ACCEPTOR_H_
