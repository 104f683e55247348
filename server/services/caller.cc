#include "server/services/caller.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "support/log.h"
#include "support/pki/certificate.h"
#include "support/pki/issuer.h"
#include "support/task_call.h"
#include "support/text_file.h"
#include "support/tls.h"

namespace berth {
namespace {

bool UsesTls(const grpc::AuthContext& auth) {
  // A certificate without any name is still a certificate: what counts is how the client connected.
  const std::vector<grpc::string_ref> types =
      auth.FindPropertyValues(GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  return auth.IsPeerAuthenticated() || (!types.empty() && types[0] != "insecure");
}

std::string PropertyOf(const grpc::AuthContext& auth, const char* name) {
  const std::vector<grpc::string_ref> values = auth.FindPropertyValues(name);
  return values.size() == 1 ? std::string(values[0].data(), values[0].size()) : std::string();
}

// gRPC writes "ipv4:127.0.0.1:41234" and "ipv6:%5B::1%5D:41234".
std::string AddressOf(const grpc::ServerContextBase& call) {
  const std::string peer = absl::StrReplaceAll(call.peer(), {{"%5B", "["}, {"%5D", "]"}});
  absl::string_view address = peer;
  if (!absl::ConsumePrefix(&address, "ipv4:")) absl::ConsumePrefix(&address, "ipv6:");
  return std::string(address);
}

}  // namespace

CallerBook::CallerBook(config::v1::Access access, std::string authorities, Clock* clock)
    : access_(std::move(access)),
      authorities_(std::move(authorities)),
      clock_(clock),
      without_tls_(std::make_shared<const Caller>(CallerWithoutTls(access_))) {}

bool CallerBook::IsOf(const std::string& file, const std::string& certificate,
                      const std::string& chain) const {
  if (file.empty()) return false;
  const absl::StatusOr<bool> signed_it = IsIssuedThrough(
      certificate, chain, ReadTextFile(authorities_).value_or(""), ReadTextFile(file).value_or(""));
  if (signed_it.ok()) return *signed_it;
  LogWarn("cannot tell which authority signed a certificate", {{"error", signed_it.status()}});
  return true;
}

Caller CallerBook::FindOut(const std::string& certificate, const std::string& chain) const {
  const bool of_users = IsOf(access_.user_authorities(), certificate, chain);
  const bool of_nodes = IsOf(access_.node_authorities(), certificate, chain);
  const absl::StatusOr<CertificateNames> names = ReadCertificateNames(certificate);
  if (names.ok()) return CallerFrom(access_, *names, of_users, of_nodes);
  Caller caller;
  caller.tls = true;
  caller.of_users = of_users;
  caller.of_nodes = of_nodes;
  caller.why_unknown = std::string(names.status().message());
  return caller;
}

std::shared_ptr<const Caller> CallerBook::Identify(const grpc::ServerContextBase& call) const {
  const std::shared_ptr<const grpc::AuthContext> auth = call.auth_context();
  if (auth == nullptr || !UsesTls(*auth)) return without_tls_;
  const std::vector<grpc::string_ref> pem =
      auth->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  const absl::string_view key =
      pem.size() == 1 ? absl::string_view(pem[0].data(), pem[0].size()) : absl::string_view();
  // What was found out changes only with the files of the authorities.
  const bool lasts = access_.user_authorities().empty() && access_.node_authorities().empty();
  const absl::Duration now = lasts ? absl::ZeroDuration() : clock_->Steady();
  {
    absl::ReaderMutexLock lock(&mutex_);
    const auto known = by_certificate_.find(key);
    if (known != by_certificate_.end() && (lasts || now - known->second.found < kTlsReload)) {
      return known->second.caller;
    }
  }
  std::string certificate(key);
  auto caller = std::make_shared<const Caller>(
      FindOut(certificate, PropertyOf(*auth, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME)));
  absl::MutexLock lock(&mutex_);
  if (by_certificate_.size() >= kMaxCertificates) by_certificate_.clear();
  by_certificate_.insert_or_assign(std::move(certificate), Known{caller, now});
  return caller;
}

Call CallerBook::CallOf(Rpc rpc, const grpc::ServerContextBase& call) const {
  std::shared_ptr<const Caller> caller = Identify(call);
  std::string address = AddressOf(call);
  const auto [task, end] = call.client_metadata().equal_range(kTaskMetadata);
  const bool agent = rpc == Rpc::kAgentServiceConnect || task != end;
  if (agent && clock_->Now() > caller->expires) end_(address);
  if (task != end) {
    const absl::string_view text(task->second.data(), task->second.size());
    caller = std::make_shared<const Caller>(
        TaskCallerFrom(*caller, std::next(task) == end ? text : absl::string_view(),
                       access_.node_identities(), task_keys_));
  }
  return {.rpc = rpc, .caller = std::move(caller), .address = std::move(address)};
}

}  // namespace berth
