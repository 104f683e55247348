// The inputs of planning besides the state: from the configuration, and as the log stores them. A
// separate library, for tools that replay a log without a server.
#ifndef BERTH_SERVER_PLANNING_POLICY_RECORD_H_
#define BERTH_SERVER_PLANNING_POLICY_RECORD_H_

#include <string>

#include "berth/config/v1/config.pb.h"
#include "core/engine/policies.h"

namespace berth {

// The configuration with which planning does everything except placing.
config::v1::Server WithoutPlacing(config::v1::Server config);

// Both only of a completed configuration (CompleteConfig).
PolicyConfig PolicyConfigFrom(const config::v1::Server& config);
// The value of LogTurn.policies: exactly the fields that PolicyConfigFrom reads. A replay parses it
// as a config.v1.Server and passes it to PolicyConfigFrom.
std::string PolicyRecordFrom(const config::v1::Server& config);

}  // namespace berth

#endif  // BERTH_SERVER_PLANNING_POLICY_RECORD_H_
