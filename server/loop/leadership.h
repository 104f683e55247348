// Leadership: whether this server may answer for the cluster. With one server it always may; with
// high availability server/ha/member.h decides.
#ifndef BERTH_SERVER_LOOP_LEADERSHIP_H_
#define BERTH_SERVER_LOOP_LEADERSHIP_H_

#include <cstdint>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

namespace berth {

// Thread-safe.
class Leadership {
 public:
  virtual ~Leadership() = default;
  // Of this server's reign. Only grows from one to the next; 0: there is no high availability, or
  // it does not lead.
  virtual uint64_t term() const = 0;
  // Where the leader's API is, as far as it is known: "HOST:PORT"; "" otherwise.
  virtual std::string leader_address() const = 0;
  // Runs `effect` with OK once this server is known to have led at some moment after this call:
  // nobody else had answered for the cluster by then. With UNAVAILABLE if that does not become
  // known, as after another took over. On any thread, where it must not block.
  virtual void Confirm(absl::AnyInvocable<void(absl::Status) &&> effect) = 0;
};

}  // namespace berth

#endif  // BERTH_SERVER_LOOP_LEADERSHIP_H_
