// Verifies a log: repeats the planning cycles of a stopped berthd with the inputs in its log, and
// compares the decisions (docs/developers/engine.md, "The decision log").
#ifndef BERTH_OFFLINE_SIM_VERIFY_H_
#define BERTH_OFFLINE_SIM_VERIFY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/sim/v1/verify.pb.h"
#include "storage/store.h"

namespace berth {

// Stops at the first difference. Changes nothing. The policies named in the log must be registered
// in this program. NOT_FOUND: the beginning of the log has aged out and no base is kept, or none of
// its turns records how it was planned. FAILED_PRECONDITION: a policy is unknown here. DATA_LOSS:
// the log contains an impossible event.
absl::StatusOr<sim::v1::VerifyResult> VerifyLog(Store& store);

// As text: "json", "yaml" or "table" (for people). Ends with a newline.
std::string PrintedVerify(const sim::v1::VerifyResult& result, absl::string_view format);

}  // namespace berth

#endif  // BERTH_OFFLINE_SIM_VERIFY_H_
