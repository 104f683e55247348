// Acceptor: listens for berthd's clients and agents, and hands their connections to gRPC.
//
// gRPC's own listener knows no bounds, and when the process runs out of descriptors it gives up for
// good: nobody can connect any more, even after everybody has left. This one turns away what is too
// much, and so keeps descriptors for the store's files.
#ifndef BERTH_SERVER_SERVICES_ACCEPTOR_H_
#define BERTH_SERVER_SERVICES_ACCEPTOR_H_

#include <grpcpp/server_builder.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/services/connections.h"
#include "support/listen.h"

namespace berth {

class Acceptor {
 public:
  struct Options {
    ConnectionLimits limits;
    absl::Duration user_timeout;  // of TCP: what was sent and is not confirmed for so long; 0: none
  };
  // "ADDRESS:PORT", port 0 for one that is free. All addresses, IPv4 and IPv6, for 0.0.0.0 and for
  // [::]. UNAVAILABLE naming the address if somebody else has it.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(const std::string& address,
                                                          const Options& options);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  int port() const { return port_; }
  // Once gRPC's server runs.
  void Start(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server);
  // Accepts no more; before gRPC's server is shut down. Idempotent.
  void Stop();
  // After Stop: closes what is still open. Calls on it end with UNAVAILABLE at the client, where gRPC
  // would end them with CANCELLED, which clients take for their own doing.
  void CutConnections();

  uint64_t refused() const { return refused_.load(); }

 private:
  Acceptor(const Options& options, Listeners listeners);
  void Run();
  void Accept(int listener);
  void Complain(const char* what, uint64_t count);

  Connections connections_;
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
