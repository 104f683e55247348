#include "server/commands/request_table.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "server/validation/text.h"
#include "storage/keys.h"

namespace berth {
namespace {

// Records dropped per call: spreads the cost of a burst.
constexpr int kForgottenPerCall = 4;

// Up to 8 bytes, little-endian; missing bytes are zero.
uint64_t LoadWord(absl::string_view bytes) {
  uint64_t word = 0;
  for (size_t i = 0; i < 8 && i < bytes.size(); ++i) {
    word |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return word;
}

uint64_t Fold(uint64_t a, uint64_t b) {
  const absl::uint128 product = absl::uint128(a) * b;
  return absl::Uint128High64(product) ^ absl::Uint128Low64(product);
}

// Two lanes of multiply and fold, word by word (as in wyhash, by Wang Yi). Unlike absl::Hash, it is
// stable across versions and machines. It distinguishes a changed body from a repeated one; it does
// not protect against forgery, and need not.
std::string Digest(absl::string_view bytes) {
  uint64_t lanes[] = {0xcbf29ce484222325u ^ bytes.size(), 0x84222325cbf29ce4u};
  while (!bytes.empty()) {
    const size_t size = std::min<size_t>(bytes.size(), 8);
    const uint64_t word = LoadWord(bytes.substr(0, size));
    lanes[0] = Fold(lanes[0] ^ word, 0x9e3779b97f4a7c15u);
    lanes[1] = Fold(lanes[1] + word, 0xd1342543de82ef95u) + word;
    bytes.remove_prefix(size);
  }
  std::string digest;
  for (const uint64_t lane : lanes) {
    for (int shift = 0; shift < 64; shift += 8) digest += static_cast<char>(lane >> shift);
  }
  return digest;
}

}  // namespace

std::string FingerprintOf(absl::string_view method, const google::protobuf::Message& body) {
  const size_t size = body.ByteSizeLong();
  const size_t head = method.size() + 1;
  std::string bytes(method);
  bytes.resize(head + size);
  google::protobuf::io::ArrayOutputStream array(bytes.data() + head, static_cast<int>(size));
  {
    google::protobuf::io::CodedOutputStream out(&array);
    out.SetSerializationDeterministic(true);
    body.SerializeWithCachedSizes(&out);
  }
  return Digest(bytes);
}

void RequestTable::Insert(StoredRequest request) {
  order_.push_back({request.time, request.id});
  Entry& entry = entries_[std::move(request.id)];
  bytes_ += request.answer.size() - entry.answer.size();
  entry = {std::move(request.fingerprint), request.time, std::move(request.answer)};
}

void RequestTable::Restore(StoredRequest request) {
  Insert(std::move(request));
  sorted_ = false;
}

absl::StatusOr<const std::string*> RequestTable::Find(absl::string_view id,
                                                      absl::string_view fingerprint,
                                                      absl::Time now) const {
  const auto found = entries_.find(id);
  if (found == entries_.end() || now - found->second.time > kRequestRetention) return nullptr;
  if (found->second.fingerprint != fingerprint) {
    return absl::AlreadyExistsError(
        absl::StrCat("request_id ", Quoted(id), " was used with another body at ",
                     absl::FormatTime(found->second.time, absl::UTCTimeZone()),
                     "; choose a new id for a new request"));
  }
  return &found->second.answer;
}

void RequestTable::Remember(Turn& turn, StoredRequest request) {
  ForgetOld(turn);
  turn.Put({RecordKind::kRequest, request.id, EncodeRequestRecord(request)});
  Insert(std::move(request));
}

void RequestTable::ForgetOld(Turn& turn) {
  if (!sorted_) std::sort(order_.begin(), order_.end());
  sorted_ = true;
  for (int i = 0; i < kForgottenPerCall && !order_.empty(); ++i) {
    const auto& [time, id] = order_.front();
    const bool old = turn.now() - time > kRequestRetention;
    if (!old && entries_.size() < capacity_ && bytes_ < max_bytes_) return;
    const auto found = entries_.find(id);
    if (found != entries_.end() && found->second.time == time) {
      turn.Put({RecordKind::kRequest, id, std::nullopt});
      bytes_ -= found->second.answer.size();
      entries_.erase(found);
    }
    order_.pop_front();
  }
}

}  // namespace berth
