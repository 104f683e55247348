// Call: one call of the API, and who makes it.
#ifndef BERTH_SERVER_ACCESS_CALL_H_
#define BERTH_SERVER_ACCESS_CALL_H_

#include <memory>
#include <string>

#include "server/access/caller.h"
#include "server/access/rpcs.h"

namespace berth {

struct Call {
  Rpc rpc;
  std::shared_ptr<const Caller> caller;  // never null
  std::string address;                   // of the client: "10.0.0.7:41234"
  std::string target = {};               // for the audit: "job/train"; "" = the cluster, or several
  std::string request_id = {};           // of the client
  // From metadata (support/request_id.h): the call is done once for it, by Write.
  std::string once_id = {};
  bool stale = false;                    // a standby may answer (support/standby.h)
};

// For the log: `"alice" at 10.0.0.7:41234`. Safe to print.
std::string TextOf(const Call& call);
// For the log and the audit.
Actor ActorOf(const Call& call);
// For rights that are asked again while a stream lasts: the agent of a task may register again in
// the meantime, as it does when its devices change.
Call WhileItLasts(const Call& call);
// Who owns the jobs that the call submits; nodes and unknown callers own none.
std::string OwnerBy(const Call& call);

}  // namespace berth

#endif  // BERTH_SERVER_ACCESS_CALL_H_
