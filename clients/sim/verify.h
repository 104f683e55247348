// Verifying a log: the planning cycles of a stopped berthd run again, from what its log says that
// went into them, and their decisions are compared with those that it took (docs/engine.md, "The
// decision log").
#ifndef BERTH_CLIENTS_SIM_VERIFY_H_
#define BERTH_CLIENTS_SIM_VERIFY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/sim/v1/verify.pb.h"
#include "storage/store.h"

namespace berth {

// Stops at the first difference. Changes nothing, and needs the policies that the log names to be
// registered in this program. NOT_FOUND: the log's beginning has aged out and no base is kept, or
// none of its turns tells how it was planned. FAILED_PRECONDITION: a policy is not known here.
// DATA_LOSS: the log holds what cannot have been.
absl::StatusOr<sim::v1::VerifyResult> VerifyLog(Store& store);

// As text: "json", "yaml" or "table" (for people). Ends with a newline.
std::string PrintedVerify(const sim::v1::VerifyResult& result, absl::string_view format);

}  // namespace berth

#endif  // BERTH_CLIENTS_SIM_VERIFY_H_
