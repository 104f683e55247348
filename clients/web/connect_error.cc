#include "clients/web/connect_error.h"

#include "absl/strings/str_cat.h"
#include "berth/web/v1/api.pb.h"
#include "support/errors.h"
#include "support/proto_json.h"
#include "support/utf8.h"

namespace berth::web {
namespace {

constexpr size_t kMaxErrorText = 4096;

struct CodeRow {
  absl::StatusCode code;
  absl::string_view name;
  int http;
};
// Connect's table of codes.
constexpr CodeRow kCodes[] = {
    {absl::StatusCode::kCancelled, "canceled", 499},
    {absl::StatusCode::kUnknown, "unknown", 500},
    {absl::StatusCode::kInvalidArgument, "invalid_argument", 400},
    {absl::StatusCode::kDeadlineExceeded, "deadline_exceeded", 504},
    {absl::StatusCode::kNotFound, "not_found", 404},
    {absl::StatusCode::kAlreadyExists, "already_exists", 409},
    {absl::StatusCode::kPermissionDenied, "permission_denied", 403},
    {absl::StatusCode::kResourceExhausted, "resource_exhausted", 429},
    {absl::StatusCode::kFailedPrecondition, "failed_precondition", 400},
    {absl::StatusCode::kAborted, "aborted", 409},
    {absl::StatusCode::kOutOfRange, "out_of_range", 400},
    {absl::StatusCode::kUnimplemented, "unimplemented", 501},
    {absl::StatusCode::kInternal, "internal", 500},
    {absl::StatusCode::kUnavailable, "unavailable", 503},
    {absl::StatusCode::kDataLoss, "data_loss", 500},
    {absl::StatusCode::kUnauthenticated, "unauthenticated", 401},
};

const CodeRow& RowOf(absl::StatusCode code) {
  for (const CodeRow& row : kCodes) {
    if (row.code == code) return row;
  }
  return kCodes[1];
}

}  // namespace

absl::string_view ConnectCode(absl::StatusCode code) { return RowOf(code).name; }

std::string ErrorJson(const absl::Status& status) {
  v1::Error error;
  error.set_code(std::string(ConnectCode(status.code())));
  error.set_message(SanitizedUtf8(status.message(), kMaxErrorText));
  for (const Violation& violation : ViolationsOf(status)) {
    v1::Detail* detail = error.add_details();
    detail->set_field(SanitizedUtf8(violation.field, kMaxErrorText));
    detail->set_description(SanitizedUtf8(violation.description, kMaxErrorText));
  }
  error.set_retry_after_s(absl::ToDoubleSeconds(RetryDelayOf(status)));
  return WriteJson(error);
}

WebAnswer ErrorAnswer(const absl::Status& status) {
  WebAnswer answer;
  answer.code = RowOf(status.code()).http;
  answer.body = ErrorJson(status);
  return answer;
}

}  // namespace berth::web
