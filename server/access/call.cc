#include "server/access/call.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace berth {

std::string TextOf(const Call& call) {
  const bool anybody = !call.caller->tls && call.caller->principal.name.empty();
  if (anybody) return call.address;
  return absl::StrCat(TextOf(*call.caller), " at ", call.address);
}

Actor ActorOf(const Call& call) {
  Actor actor = ActorOf(*call.caller, call.address);
  actor.method = std::string(NameOf(call.rpc));
  actor.request_id = call.request_id;
  actor.target = call.target;
  return actor;
}

Call WhileItLasts(const Call& call) {
  if (!call.caller->task.has_value()) return call;
  Caller caller = *call.caller;
  caller.task->epoch = 0;
  Call lasting = call;
  lasting.caller = std::make_shared<const Caller>(std::move(caller));
  return lasting;
}

std::string OwnerBy(const Call& call) {
  const Principal& principal = call.caller->principal;
  return principal.kind == Principal::Kind::kUser ? principal.name : std::string();
}

}  // namespace berth
