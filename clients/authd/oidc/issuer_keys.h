// The keys of one issuer: fetched over HTTPS by its discovery document, and kept for a while.
#ifndef BERTH_CLIENTS_AUTHD_OIDC_ISSUER_KEYS_H_
#define BERTH_CLIENTS_AUTHD_OIDC_ISSUER_KEYS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clients/authd/oidc/keys.h"
#include "support/clock.h"

namespace berth::oidc {

// The body of GET `url`, at most `most_bytes`. Blocks, for 10 seconds at most.
using Fetch = std::function<absl::StatusOr<std::string>(const std::string& url, size_t most_bytes)>;

// However many tokens with unknown keys come, the issuer is asked once in this time.
inline constexpr absl::Duration kFetchAgain = absl::Seconds(20);
inline constexpr absl::Duration kKeysFresh = absl::Minutes(15);  // then they are fetched again
inline constexpr absl::Duration kKeysUsable = absl::Hours(1);    // while the issuer does not answer
inline constexpr size_t kMaxDiscoveryBytes = size_t{256} << 10;

// Thread-safe.
class IssuerKeys {
 public:
  // `clock` must outlive this.
  IssuerKeys(std::string issuer, Fetch fetch, Clock& clock);

  // Keys that have the one of the hint, if the issuer has it. One caller fetches at a time; others
  // whose key is known are served meanwhile, the rest is told to try again. UNAVAILABLE: the issuer
  // does not answer, or did not have this key when it was asked last, which may change.
  absl::StatusOr<std::shared_ptr<const KeySet>> For(const TokenHint& hint)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::StatusOr<KeySet> FetchKeys() const;
  bool UsableFor(const TokenHint& hint, absl::Duration age) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<const KeySet>> Known(const TokenHint& hint) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string issuer_;
  const Fetch fetch_;
  Clock& clock_;
  absl::Mutex mutex_;
  std::shared_ptr<const KeySet> keys_ ABSL_GUARDED_BY(mutex_);  // null: none yet
  absl::Duration fetched_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  absl::Duration asked_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  bool fetching_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status last_ ABSL_GUARDED_BY(mutex_);  // of the last fetch
};

}  // namespace berth::oidc

#endif  // BERTH_CLIENTS_AUTHD_OIDC_ISSUER_KEYS_H_
