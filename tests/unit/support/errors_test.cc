#include "support/errors.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/rpc/status.pb.h"

namespace berth::testing {

TEST_CASE("errors: violations are preserved over gRPC") {
  const std::vector<Violation> violations = {{"jobs[0].name", "must be a DNS label"},
                                             {"", "of the request as a whole"}};
  const absl::Status sent = ViolationsError(absl::StatusCode::kInvalidArgument, violations);
  CHECK(sent.message() == "jobs[0].name: must be a DNS label; of the request as a whole");
  const grpc::Status wire = ToGrpcStatus(sent);
  CHECK(wire.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  const absl::Status received = FromGrpcStatus(wire);
  CHECK(received == sent);
  CHECK(ViolationsOf(received) == violations);
  CHECK(RetryDelayOf(received) == absl::ZeroDuration());
}

TEST_CASE("errors: clients in other languages get google.rpc types") {
  const grpc::Status wire = ToGrpcStatus(
      RetryLaterError(absl::StatusCode::kResourceExhausted, "later", absl::Milliseconds(1500)));
  google::rpc::Status details;
  REQUIRE(details.ParseFromString(wire.error_details()));
  CHECK(details.code() == 8);
  CHECK(details.message() == "later");
  REQUIRE(details.details_size() == 1);
  CHECK(details.details(0).type_url() == "type.googleapis.com/google.rpc.RetryInfo");
  google::rpc::RetryInfo retry;
  REQUIRE(retry.ParseFromString(details.details(0).value()));
  CHECK(retry.retry_delay().seconds() == 1);
  CHECK(retry.retry_delay().nanos() == 500'000'000);
  CHECK(RetryDelayOf(FromGrpcStatus(wire)) == absl::Milliseconds(1500));
}

TEST_CASE("errors: a long list of violations is shortened, and the error says so") {
  std::vector<Violation> violations;
  for (int i = 0; i < 200; ++i) violations.push_back({absl::StrCat("f", i), std::string(300, 'x')});
  const absl::Status status = ViolationsError(absl::StatusCode::kInvalidArgument, violations);
  CHECK(status.message().find("and 192 more") != absl::string_view::npos);
  CHECK(ViolationsOf(status).size() <= kMaxViolationsInError);
  CHECK(ToGrpcStatus(status).error_details().size() < 2 * kMaxErrorBytes);
}

TEST_CASE("errors: any error fits into a header, whatever text it repeats") {
  for (const char c : {'x', '%', '\xc3'}) {
    const std::string echo(10'000, c);
    std::vector<Violation> violations(50, Violation{echo, echo});
    for (const absl::Status& status :
         {ViolationsError(absl::StatusCode::kInvalidArgument, violations),
          absl::NotFoundError(echo),
          RetryLaterError(absl::StatusCode::kUnavailable, echo, absl::Seconds(1))}) {
      const grpc::Status wire = ToGrpcStatus(status);
      const size_t encoded = wire.error_message().size() * (c == 'x' ? 1 : 3);
      CHECK(encoded + wire.error_details().size() * 4 / 3 < 8000);
      CHECK(wire.error_message().find("...") != std::string::npos);
    }
  }
}

TEST_CASE("errors: errors without details, and OK") {
  CHECK(ToGrpcStatus(absl::OkStatus()).ok());
  CHECK(FromGrpcStatus(grpc::Status::OK).ok());
  const grpc::Status plain = ToGrpcStatus(absl::NotFoundError("no"));
  CHECK(plain.error_details().empty());
  CHECK(FromGrpcStatus(plain) == absl::NotFoundError("no"));
  // Details in another format do no harm.
  CHECK(FromGrpcStatus({grpc::StatusCode::INTERNAL, "x", "\xff\xff"}).message() == "x");
}

}  // namespace berth::testing
