#include "storage/hash_chain.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "storage/keys.h"

namespace berth {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

}  // namespace

ChainHash NextChainHash(const ChainHash& before, uint64_t sequence, absl::string_view turn) {
  thread_local const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  const std::string number = SequenceKey(sequence);
  ChainHash hash;
  // Fails only if the library is broken or out of memory.
  BERTH_CHECK(EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1 &&
              EVP_DigestUpdate(context.get(), before.data(), before.size()) == 1 &&
              EVP_DigestUpdate(context.get(), number.data(), number.size()) == 1 &&
              EVP_DigestUpdate(context.get(), turn.data(), turn.size()) == 1 &&
              EVP_DigestFinal_ex(context.get(), hash.data(), nullptr) == 1);
  return hash;
}

std::string ChainHashBytes(const ChainHash& hash) { return {hash.begin(), hash.end()}; }

std::string ChainEntry(const ChainHash& hash, absl::string_view turn) {
  std::string value;
  value.reserve(hash.size() + turn.size());
  value.append(hash.begin(), hash.end());
  value.append(turn.data(), turn.size());
  return value;
}

absl::StatusOr<ChainHash> ParseChainHash(absl::string_view bytes) {
  ChainHash hash;
  if (bytes.size() != hash.size()) {
    return absl::DataLossError(absl::StrCat("a chain hash of ", bytes.size(), " bytes"));
  }
  std::copy(bytes.begin(), bytes.end(), hash.begin());
  return hash;
}

absl::StatusOr<ChainLink> ParseChainEntry(absl::string_view value) {
  absl::StatusOr<ChainHash> hash = ParseChainHash(value.substr(0, sizeof(ChainHash)));
  if (!hash.ok()) return hash.status();
  return ChainLink{.hash = *hash, .turn = value.substr(sizeof(ChainHash))};
}

}  // namespace berth
