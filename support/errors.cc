#include "support/errors.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/rpc/status.pb.h"
#include "support/proto_time.h"
#include "support/visible.h"

namespace berth {
namespace {

// The type name as in google.protobuf.Any; also the key of the payload in an absl::Status.
constexpr absl::string_view kBadRequestType = "type.googleapis.com/google.rpc.BadRequest";
constexpr absl::string_view kRetryInfoType = "type.googleapis.com/google.rpc.RetryInfo";
constexpr size_t kViolationsInMessage = 8;

// The size in the header, where gRPC percent-encodes the message.
size_t EncodedBytes(absl::string_view message) {
  size_t bytes = 0;
  for (const char c : message) bytes += c >= ' ' && c <= '~' && c != '%' ? 1 : 3;
  return bytes;
}

std::string ShortenedMessage(absl::string_view message, size_t max_bytes) {
  size_t most = message.size();
  while (EncodedBytes(message.substr(0, most)) > max_bytes) most -= most / 8 + 1;
  return Shortened(message, std::max<size_t>(most, 3));
}

std::string Summary(const std::vector<Violation>& violations) {
  std::string text;
  const size_t shown = std::min(violations.size(), kViolationsInMessage);
  for (size_t i = 0; i < shown; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "; ", violations[i].field,
                    violations[i].field.empty() ? "" : ": ", violations[i].description);
  }
  constexpr size_t kRoomForCount = 40;  // "; and 192 more"
  return ShortenedMessage(text, kMaxErrorMessageBytes - kRoomForCount);
}

// The first violations, each cut to its maximum length.
std::vector<Violation> ShortenedAll(const std::vector<Violation>& all) {
  std::vector<Violation> some;
  for (size_t i = 0; i < std::min(all.size(), kMaxViolationsInError); ++i) {
    some.push_back({Shortened(all[i].field, kMaxViolationFieldBytes),
                    Shortened(all[i].description, kMaxViolationBytes)});
  }
  return some;
}

template <class Message>
bool PayloadOf(const absl::Status& status, absl::string_view type, Message* message) {
  const absl::optional<absl::Cord> payload = status.GetPayload(type);
  return payload.has_value() && message->ParseFromString(std::string(*payload));
}

}  // namespace

absl::Status ViolationsError(absl::StatusCode code, const std::vector<Violation>& all) {
  const std::vector<Violation> violations = ShortenedAll(all);
  std::string message = Summary(violations);
  if (all.size() > kViolationsInMessage) {
    absl::StrAppend(&message, "; and ", all.size() - kViolationsInMessage, " more");
  }
  absl::Status status(code, message);
  google::rpc::BadRequest details;
  size_t bytes = message.size();
  for (size_t i = 0; i < violations.size(); ++i) {
    bytes += violations[i].field.size() + violations[i].description.size() + 8;
    if (i > 0 && bytes > kMaxErrorBytes) break;
    auto* added = details.add_field_violations();
    added->set_field(violations[i].field);
    added->set_description(violations[i].description);
  }
  status.SetPayload(kBadRequestType, absl::Cord(details.SerializeAsString()));
  return status;
}

absl::Status RetryLaterError(absl::StatusCode code, absl::string_view message,
                             absl::Duration delay) {
  absl::Status status(code, message);
  google::rpc::RetryInfo details;
  ToProto(delay, details.mutable_retry_delay());
  status.SetPayload(kRetryInfoType, absl::Cord(details.SerializeAsString()));
  return status;
}

std::vector<Violation> ViolationsOf(const absl::Status& status) {
  std::vector<Violation> violations;
  google::rpc::BadRequest details;
  if (!PayloadOf(status, kBadRequestType, &details)) return violations;
  for (const auto& violation : details.field_violations()) {
    violations.push_back({violation.field(), violation.description()});
  }
  return violations;
}

absl::Duration RetryDelayOf(const absl::Status& status) {
  google::rpc::RetryInfo details;
  if (!PayloadOf(status, kRetryInfoType, &details)) return absl::ZeroDuration();
  return DurationFrom(details.retry_delay());
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const std::string message = ShortenedMessage(status.message(), kMaxErrorMessageBytes);
  google::rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(message);
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    auto* any = details.add_details();
    any->set_type_url(std::string(type));
    any->set_value(std::string(payload));
  });
  const auto code = static_cast<grpc::StatusCode>(status.code());
  if (details.details().empty()) return grpc::Status(code, message);
  return grpc::Status(code, message, details.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status details;
  if (!status.error_details().empty() && details.ParseFromString(status.error_details())) {
    for (const auto& any : details.details()) {
      result.SetPayload(any.type_url(), absl::Cord(any.value()));
    }
  }
  return result;
}

}  // namespace berth
