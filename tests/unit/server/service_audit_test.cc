// AuditService over gRPC.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "berth/v1/audit.grpc.pb.h"
#include "storage/store_health.h"
#include "tests/unit/server/service_world.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

using testing::Call;
using testing::ServiceWorld;
using Stub = v1::AuditService::Stub;

struct AuditServiceWorld {
  TempDirectory directory;
  ServiceWorld world{[this](config::v1::Server& config) {
    config.set_data_directory(directory.path());
    config.mutable_access()->mutable_without_tls()->set_user("ada");
  }};
  std::unique_ptr<Stub> stub;

  AuditServiceWorld() {
    world.health = std::make_shared<StoreHealth>(directory.path());
    Restart();
  }
  void Restart() {
    world.Restart();
    stub = v1::AuditService::NewStub(world.channel());
  }
  v1::ListAuditResponse List(const v1::ListAuditRequest& request) {
    v1::ListAuditResponse response;
    const absl::Status status = Call(*stub, &Stub::ListAudit, request, &response);
    INFO(status);
    REQUIRE(status.ok());
    return response;
  }
};

TEST_CASE("service audit: pages follow each other, and filters apply") {
  AuditServiceWorld audit;
  for (const char* name : {"a", "b", "q"}) audit.world.CreateQueue(name);
  audit.world.MustSubmit({"j1", "j2"});
  std::vector<std::string> changes;
  v1::ListAuditRequest request;
  request.set_page_size(1);
  request.set_actor("ada");
  for (int pages = 0; pages < 20; ++pages) {
    const v1::ListAuditResponse page = audit.List(request);
    REQUIRE(page.entries_size() <= 1);
    for (const v1::AuditEntry& entry : page.entries()) {
      CHECK(entry.actor().door() == v1::AuditActor::WITHOUT_TLS);
      for (const std::string& name : entry.changes(0).names()) changes.push_back(name);
    }
    request.set_page_token(page.next_page_token());
    if (page.next_page_token().empty()) break;
  }
  CHECK(changes.size() >= 5);
  CHECK(std::vector<std::string>(changes.end() - 2, changes.end()) ==
        std::vector<std::string>{"j1", "j2"});

  request.Clear();
  request.set_job("j2");
  CHECK(audit.List(request).entries_size() == 1);
  request.mutable_until()->set_seconds(1);
  CHECK(audit.List(request).entries_size() == 0);
  request.Clear();
  request.set_refused(true);
  CHECK(audit.List(request).entries_size() == 0);
}

TEST_CASE("service audit: what changed is there after a restart, and verified") {
  AuditServiceWorld audit;
  audit.world.CreateQueue("a");
  v1::VerifyAuditResponse before, after;
  REQUIRE(Call(*audit.stub, &Stub::VerifyAudit, {}, &before).ok());
  CHECK(before.broken().empty());
  CHECK(before.head_hash().size() == 64);
  audit.Restart();
  REQUIRE(Call(*audit.stub, &Stub::VerifyAudit, {}, &after).ok());
  CHECK(after.head_hash() == before.head_hash());
  CHECK(after.entries() == before.entries());
}

TEST_CASE("service audit: wrong requests are refused") {
  AuditServiceWorld audit;
  v1::ListAuditResponse response;
  v1::ListAuditRequest request;
  request.set_job("no such*");
  CHECK(absl::IsInvalidArgument(Call(*audit.stub, &Stub::ListAudit, request, &response)));
  request.Clear();
  request.set_actor("a\nb");
  CHECK(absl::IsInvalidArgument(Call(*audit.stub, &Stub::ListAudit, request, &response)));
  request.Clear();
  request.set_page_size(1001);
  CHECK(absl::IsInvalidArgument(Call(*audit.stub, &Stub::ListAudit, request, &response)));
  request.Clear();
  request.set_page_token("x");
  CHECK(absl::IsInvalidArgument(Call(*audit.stub, &Stub::ListAudit, request, &response)));
  request.Clear();
  request.mutable_since()->set_seconds(int64_t{1} << 60);
  CHECK(absl::IsInvalidArgument(Call(*audit.stub, &Stub::ListAudit, request, &response)));
}

TEST_CASE("service audit: a server without files has none") {
  ServiceWorld world;
  const auto stub = v1::AuditService::NewStub(world.channel());
  v1::ListAuditResponse response;
  const absl::Status status = Call(*stub, &Stub::ListAudit, {}, &response);
  CHECK(absl::IsFailedPrecondition(status));
}

}  // namespace
}  // namespace berth
