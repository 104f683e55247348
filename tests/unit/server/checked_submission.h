// Requests that passed validation, as the handlers pass them to a Submission.
#ifndef BERTH_TESTS_UNIT_SERVER_CHECKED_SUBMISSION_H_
#define BERTH_TESTS_UNIT_SERVER_CHECKED_SUBMISSION_H_

#include <catch2/catch.hpp>
#include <utility>

#include "server/commands/submission.h"
#include "tests/unit/server/loop_world.h"
#include "tests/unit/server/validation_samples.h"

namespace berth::testing {

// The request outlives the result. Not in a turn.
inline CheckedSubmission Checked(World& world, const v1::SubmitJobsRequest& request) {
  ReadView view(*world.loop);
  absl::StatusOr<CheckedSubmission> checked =
      CheckSubmission(view, request, DefaultLimits(), world.store.Format());
  INFO(checked.status());
  REQUIRE(checked.ok());
  return *std::move(checked);
}

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_SERVER_CHECKED_SUBMISSION_H_
