// Join tokens: secrets with which the agents of new nodes ask for their first certificate
// (docs/developers/access.md). The secret itself is never here, only its SHA-256.
//
//   {id 5f..., nodes "gpu-*", uses_left 8}  + redeem {5f..., gpu-3, request}  ->  uses_left 7
#ifndef BERTH_CORE_ACCESS_JOIN_TOKENS_H_
#define BERTH_CORE_ACCESS_JOIN_TOKENS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace berth {

struct JoinToken {
  std::string id;           // public; lower-case hexadecimal digits
  std::string secret_hash;  // SHA-256 of the secret
  std::string nodes;        // a node's name, or a pattern with '*' and '?'
  uint32_t uses_left = 0;
  absl::Time expires;
  std::string created_by;  // a user; "" if nobody was identified
  // Of the latest use. The same again takes no further use: its answer may have been lost.
  std::string last_node;
  std::string last_request;  // SHA-256 of the request for a certificate
  bool operator==(const JoinToken&) const = default;
};

struct JoinRedemption {
  std::string id;
  std::string node;
  std::string request;  // as last_request
  bool operator==(const JoinRedemption&) const = default;
};

// Applied in the order of the fields.
struct JoinTokenChange {
  std::vector<std::string> drop;  // revoked, or expired
  std::vector<JoinToken> create;
  std::vector<JoinRedemption> redeem;
  bool operator==(const JoinTokenChange&) const = default;
};

class JoinTokens {
 public:
  static constexpr size_t kMost = 1000;
  static constexpr uint32_t kMostUses = 10'000;  // of one
  static constexpr size_t kIdBytes = 16;
  static constexpr size_t kHashBytes = 32;

  // INVALID_ARGUMENT: a field of a token; NOT_FOUND; ALREADY_EXISTS: the id; FAILED_PRECONDITION:
  // no use is left; RESOURCE_EXHAUSTED: too many tokens. Whether a token is for the node, and
  // whether it has expired, are the caller's to check.
  absl::Status Check(const JoinTokenChange& change) const;
  // Requires a change that Check accepts.
  void Apply(const JoinTokenChange& change);
  // The change that makes these tokens out of none, sorted by id.
  JoinTokenChange AsChange() const;

  const JoinToken* Find(absl::string_view id) const;  // nullptr if there is none
  const std::map<std::string, JoinToken, std::less<>>& all() const { return tokens_; }
  std::vector<std::string> ExpiredAt(absl::Time now) const;  // ids, sorted

  bool operator==(const JoinTokens&) const = default;

 private:
  std::map<std::string, JoinToken, std::less<>> tokens_;
};

// A use of the token by this node, for this request, whose answer may have been lost.
bool IsLastUse(const JoinToken& token, absl::string_view node, absl::string_view request);

}  // namespace berth

#endif  // BERTH_CORE_ACCESS_JOIN_TOKENS_H_
