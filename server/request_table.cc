#include "server/request_table.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/validation/text.h"
#include "storage/keys.h"

namespace berth {
namespace {

// Each call forgets at most so many: the cost of a burst is spread.
constexpr int kForgottenPerCall = 4;

// Two lanes of FNV-1a (Fowler, Noll, Vo) with different offsets: stable over versions and machines,
// which absl::Hash is not. It tells a changed body from a repeated one; it is no defence against
// forgery, and needs to be none.
std::string Digest(absl::string_view bytes) {
  uint64_t a = 0xcbf29ce484222325u;
  uint64_t b = 0x84222325cbf29ce4u;
  for (const char c : bytes) {
    a = (a ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    b = (b ^ static_cast<unsigned char>(c)) * 0x10000000233u;
  }
  std::string digest(16, '\0');
  for (size_t i = 0; i < 8; ++i) {
    digest[i] = static_cast<char>(a >> (8 * i));
    digest[8 + i] = static_cast<char>(b >> (8 * i));
  }
  return digest;
}

}  // namespace

void Fingerprint::Add(const google::protobuf::Message& message) {
  google::protobuf::io::StringOutputStream stream(&bytes_);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  out.WriteVarint64(message.ByteSizeLong());  // so that neighbours cannot trade bytes
  message.SerializeToCodedStream(&out);
}

std::string Fingerprint::Finish() const { return Digest(bytes_); }

std::string FingerprintOf(absl::string_view method, const google::protobuf::Message& body) {
  Fingerprint fingerprint(method);
  fingerprint.Add(body);
  return fingerprint.Finish();
}

void RequestTable::Insert(StoredRequest request) {
  order_.push_back({request.time, request.id});
  entries_[std::move(request.id)] = {std::move(request.fingerprint), request.time,
                                     std::move(request.answer)};
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
        absl::StrCat("request_id ", Quoted(id), " came with another body at ",
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
    if (!old && entries_.size() < capacity_) return;
    const auto found = entries_.find(id);
    if (found != entries_.end() && found->second.time == time) {
      turn.Put({RecordKind::kRequest, id, std::nullopt});
      entries_.erase(found);
    }
    order_.pop_front();
  }
}

}  // namespace berth
