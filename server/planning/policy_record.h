// What a cycle is planned with besides the state: from the configuration, and as the log keeps it.
// A library of its own, for tools that replay a log without a server.
#ifndef BERTH_SERVER_PLANNING_POLICY_RECORD_H_
#define BERTH_SERVER_PLANNING_POLICY_RECORD_H_

#include <string>

#include "berth/config/v1/config.pb.h"
#include "core/engine/policies.h"

namespace berth {

// The configuration by which planning does all that it does otherwise, and places nothing.
config::v1::Server WithoutPlacing(config::v1::Server config);

// Both only of a completed configuration (CompleteConfig).
PolicyConfig PolicyConfigFrom(const config::v1::Server& config);
// What LogTurn.policies says: the fields that PolicyConfigFrom reads, and no others. A replay
// parses it as a config.v1.Server and gives it to PolicyConfigFrom.
std::string PolicyRecordFrom(const config::v1::Server& config);

}  // namespace berth

#endif  // BERTH_SERVER_PLANNING_POLICY_RECORD_H_
