#include "server/services/caller.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "server/services/run_as.h"
#include "server/validation/text.h"

namespace berth {

std::string CallerOf(const grpc::ServerContextBase& context) {
  // gRPC writes "ipv4:127.0.0.1:41234" and "ipv6:%5B::1%5D:41234".
  const std::string peer = absl::StrReplaceAll(context.peer(), {{"%5B", "["}, {"%5D", "]"}});
  absl::string_view address = peer;
  if (!absl::ConsumePrefix(&address, "ipv4:")) absl::ConsumePrefix(&address, "ipv6:");
  const ClientIdentity client = IdentityOf(context);
  if (!client.tls) return std::string(address);
  const std::string name =
      client.common_name.empty() ? "a certificate without one name" : Quoted(client.common_name);
  return absl::StrCat(name, " at ", address);
}

}  // namespace berth
