// EtcdCluster: real members of etcd for tests, on loopback, with data in a temporary directory.
//
//   if (!EtcdCluster::Available()) return;  // no `etcd` program on this machine
//   EtcdCluster etcd({.members = 3});
//   auto client = EtcdClient::Create({.endpoints = etcd.endpoints()});
#ifndef BERTH_TESTS_ETCD_ETCD_CLUSTER_H_
#define BERTH_TESTS_ETCD_ETCD_CLUSTER_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/tls.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth::testing {

struct EtcdClusterOptions {
  size_t members = 1;
  int64_t quota_bytes = int64_t{256} << 20;
  bool tls = false;
};

class EtcdCluster {
 public:
  // Whether there is an `etcd` program; says once if not.
  static bool Available();

  // Starts all members and waits until each answers. Fails the process if they do not.
  explicit EtcdCluster(EtcdClusterOptions options = {});
  ~EtcdCluster();
  EtcdCluster(const EtcdCluster&) = delete;
  EtcdCluster& operator=(const EtcdCluster&) = delete;

  std::vector<std::string> endpoints() const;  // HOST:PORT
  // For clients; empty without `tls`. Any certificate of the authority is accepted.
  TlsFiles tls() const;
  const std::string& data(size_t member) const { return members_[member].data; }

  // SIGKILL.
  void Kill(size_t member);
  // After Kill, with whatever is in its data directory now.
  void Start(size_t member);
  // Until the member answers with the cluster's agreement.
  void Await(size_t member);
  // SIGSTOP, SIGCONT.
  void Pause(size_t member);
  void Continue(size_t member);

 private:
  struct Member {
    std::string name, client, peer, data;
    pid_t pid = -1;
  };
  std::vector<std::string> Arguments(const Member& member) const;
  void MakeCertificates() const;

  const EtcdClusterOptions options_;
  TempDirectory directory_;
  std::vector<Member> members_;
};

}  // namespace berth::testing

#endif  // BERTH_TESTS_ETCD_ETCD_CLUSTER_H_
