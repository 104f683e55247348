// RequestTable: stored responses by request id, so that a client may repeat a call whose response
// it lost.
//
// An id is remembered for kRequestRetention, or until there are more than kMaxRequests, or more
// than kMaxAnswerBytes of responses: then the oldest are forgotten first. Each is a
// kRequest record in the batch of the call's effects: both are durable, or neither. Loop thread
// only, once serving.
#ifndef BERTH_SERVER_COMMANDS_REQUEST_TABLE_H_
#define BERTH_SERVER_COMMANDS_REQUEST_TABLE_H_

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/loop/turn.h"
#include "storage/codec.h"

namespace google::protobuf {
class Message;
}

namespace berth {

inline constexpr absl::Duration kRequestRetention = absl::Hours(24);
inline constexpr size_t kMaxRequests = 500'000;
inline constexpr size_t kMaxAnswerBytes = 256 << 20;

// A digest of a method and its body: equal for equal bodies, whatever the order of maps.
std::string FingerprintOf(absl::string_view method, const google::protobuf::Message& body);

class RequestTable {
 public:
  explicit RequestTable(size_t capacity = kMaxRequests, size_t max_bytes = kMaxAnswerBytes)
      : capacity_(capacity), max_bytes_(max_bytes) {}

  // At start, in any order; the oldest are dropped when there are too many.
  void Restore(StoredRequest request);

  // The response to an earlier call with this id, or null if there was none. ALREADY_EXISTS naming
  // the id if that call had another body.
  absl::StatusOr<const std::string*> Find(absl::string_view id, absl::string_view fingerprint,
                                          absl::Time now) const;

  // Stores the response with the turn, and drops a few that are too old.
  void Remember(Turn& turn, StoredRequest request);

  size_t size() const { return entries_.size(); }
  size_t answer_bytes() const { return bytes_; }

 private:
  struct Entry {
    std::string fingerprint;
    absl::Time time;
    std::string answer;
  };
  void Insert(StoredRequest request);
  void ForgetOld(Turn& turn);

  const size_t capacity_, max_bytes_;
  size_t bytes_ = 0;  // of the responses
  absl::flat_hash_map<std::string, Entry> entries_;
  // By time; restored ones are sorted at the first use. An id that was reused after its retention
  // appears twice.
  std::deque<std::pair<absl::Time, std::string>> order_;
  bool sorted_ = true;
};

}  // namespace berth

#endif  // BERTH_SERVER_COMMANDS_REQUEST_TABLE_H_
