#include "server/access/task_caller.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "server/validation/text.h"
#include "support/task_call.h"

namespace berth {
namespace {

constexpr size_t kSecretBytes = 32;

// What the caller keeps of its connection: no name and no right.
Caller WithoutRights(const Caller& connection) {
  Caller caller;
  caller.principal.kind = Principal::Kind::kNode;
  caller.why_unknown = "a call for a task";
  caller.tls = connection.tls;
  caller.serial = connection.serial;
  caller.expires = connection.expires;
  return caller;
}

Caller RefusedCaller(Caller caller, absl::Status why) {
  caller.refused = std::move(why);
  return caller;
}

}  // namespace

TaskKeys::TaskKeys() : secret_(kSecretBytes, '\0') {
  BERTH_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(secret_.data()), kSecretBytes) == 1);
}

std::string TaskKeys::Of(NodeId node, absl::string_view name, uint64_t epoch) const {
  const std::string text = absl::StrCat(node.value, " ", epoch, " ", name);
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash;
  unsigned int bytes = 0;
  BERTH_CHECK(HMAC(EVP_sha256(), secret_.data(), kSecretBytes,
                   reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data(),
                   &bytes) != nullptr);
  return absl::BytesToHexString({reinterpret_cast<const char*>(hash.data()), bytes});
}

bool TaskKeys::Is(absl::string_view key, NodeId node, absl::string_view name,
                  uint64_t epoch) const {
  const std::string right = Of(node, name, epoch);
  return key.size() == right.size() && CRYPTO_memcmp(key.data(), right.data(), right.size()) == 0;
}

// A wrong key is mostly one of before a restart of berthd: the agent gets another one.
Caller TaskCallerFrom(const Caller& connection, absl::string_view text, bool identities,
                      const TaskKeys& keys) {
  Caller caller = WithoutRights(connection);
  const std::optional<TaskCall> call = ParseTaskCall(text);
  if (!call.has_value() || call->epoch == 0) {
    return RefusedCaller(std::move(caller),
                         absl::InvalidArgumentError("the metadata names no task"));
  }
  absl::Status agent = MayBeAgentOf(connection, call->node, identities);
  if (!agent.ok()) return RefusedCaller(std::move(caller), std::move(agent));
  if (!keys.Is(call->key, NodeId{call->node_id}, call->node, call->epoch)) {
    return RefusedCaller(std::move(caller), absl::UnavailableError(absl::StrCat(
                                                "the agent of node ", Quoted(call->node),
                                                " has no session with this berthd")));
  }
  caller.principal.name = call->node;
  caller.proof = connection.proof;
  caller.by_identity = connection.by_identity;  // for the audit
  caller.why_unknown.clear();
  caller.task = CallingTask{.key = {JobId{call->job_uid}, call->task},
                            .attempt = call->attempt,
                            .node = NodeId{call->node_id},
                            .epoch = call->epoch,
                            .agent = connection.principal};
  return caller;
}

std::string TextOf(const CallingTask& task, absl::string_view node) {
  return absl::StrCat("task ", task.key.task, " of job ", task.key.job.value, " on node ",
                      Quoted(node));
}

}  // namespace berth
