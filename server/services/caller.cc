#include "server/services/caller.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "support/pki/certificate.h"

namespace berth {
namespace {

bool UsesTls(const grpc::AuthContext& auth) {
  // A certificate without any name is still a certificate: what counts is how the client connected.
  const std::vector<grpc::string_ref> types =
      auth.FindPropertyValues(GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  return auth.IsPeerAuthenticated() || (!types.empty() && types[0] != "insecure");
}

Caller CallerBy(const config::v1::Access& access, const std::string& certificate) {
  const absl::StatusOr<CertificateNames> names = ReadCertificateNames(certificate);
  if (names.ok()) return CallerFrom(access, *names);
  Caller caller;
  caller.tls = true;
  caller.why_unknown = std::string(names.status().message());
  return caller;
}

// gRPC writes "ipv4:127.0.0.1:41234" and "ipv6:%5B::1%5D:41234".
std::string AddressOf(const grpc::ServerContextBase& call) {
  const std::string peer = absl::StrReplaceAll(call.peer(), {{"%5B", "["}, {"%5D", "]"}});
  absl::string_view address = peer;
  if (!absl::ConsumePrefix(&address, "ipv4:")) absl::ConsumePrefix(&address, "ipv6:");
  return std::string(address);
}

}  // namespace

CallerBook::CallerBook(config::v1::Access access)
    : access_(std::move(access)),
      without_tls_(std::make_shared<const Caller>(CallerWithoutTls(access_))) {}

std::shared_ptr<const Caller> CallerBook::Identify(const grpc::ServerContextBase& call) const {
  const std::shared_ptr<const grpc::AuthContext> auth = call.auth_context();
  if (auth == nullptr || !UsesTls(*auth)) return without_tls_;
  const std::vector<grpc::string_ref> pem =
      auth->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  const absl::string_view key =
      pem.size() == 1 ? absl::string_view(pem[0].data(), pem[0].size()) : absl::string_view();
  {
    absl::ReaderMutexLock lock(&mutex_);
    const auto known = by_certificate_.find(key);
    if (known != by_certificate_.end()) return known->second;
  }
  std::string certificate(key);
  auto caller = std::make_shared<const Caller>(CallerBy(access_, certificate));
  absl::MutexLock lock(&mutex_);
  if (by_certificate_.size() >= kMaxCertificates) by_certificate_.clear();
  by_certificate_.emplace(std::move(certificate), caller);
  return caller;
}

Actor CallerBook::ActorOf(const grpc::ServerContextBase& call) const {
  return berth::ActorOf(*Identify(call), AddressOf(call));
}

std::string CallerBook::Describe(const grpc::ServerContextBase& call) const {
  const std::string address = AddressOf(call);
  const std::shared_ptr<const Caller> caller = Identify(call);
  const bool anybody = !caller->tls && caller->principal.name.empty();
  if (anybody) return address;
  return absl::StrCat(TextOf(*caller), " at ", address);
}

}  // namespace berth
