// Results as text.
#ifndef BERTH_OFFLINE_SIM_OUTPUT_H_
#define BERTH_OFFLINE_SIM_OUTPUT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "berth/sim/v1/result.pb.h"

namespace berth {

// "json" (one object), "yaml" (one document) or "table" (for people). Ends with a newline.
std::string Printed(const sim::v1::ScenarioResult& result, absl::string_view format);
// Any message, as "json" or "yaml". Numbers that are 0 are omitted.
std::string PrintedMessage(const google::protobuf::Message& message, absl::string_view format);
// Likewise, but "json" includes numbers that are 0, for programs that read them by name.
std::string PrintedFigures(const google::protobuf::Message& message, absl::string_view format);

}  // namespace berth

#endif  // BERTH_OFFLINE_SIM_OUTPUT_H_
