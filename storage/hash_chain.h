// The hash chain of batches: each log entry begins with a hash over the previous entry and itself,
// which reveals lost, changed or reordered entries. SHA-256, by OpenSSL.
//
//   value of a log entry = hash (32 bytes), turn (store.v1.LogTurn)
//   hash = SHA-256(hash of the entry before, sequence as 8 bytes big-endian, turn)
//   the hash before sequence 1 is 32 zero bytes
#ifndef BERTH_STORAGE_HASH_CHAIN_H_
#define BERTH_STORAGE_HASH_CHAIN_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth {

using ChainHash = std::array<uint8_t, 32>;

// Pure; thread-safe.
ChainHash NextChainHash(const ChainHash& before, uint64_t sequence, absl::string_view turn);

// Encodes and decodes the stored value of a log entry. DATA_LOSS if the value is too short. The
// turn is a view into `value`.
std::string ChainEntry(const ChainHash& hash, absl::string_view turn);
struct ChainLink {
  ChainHash hash;
  absl::string_view turn;
};
absl::StatusOr<ChainLink> ParseChainEntry(absl::string_view value);

std::string ChainHashBytes(const ChainHash& hash);
absl::StatusOr<ChainHash> ParseChainHash(absl::string_view bytes);

}  // namespace berth

#endif  // BERTH_STORAGE_HASH_CHAIN_H_
