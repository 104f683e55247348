// From the completed configuration to the options of berthd's parts.
#ifndef BERTH_SERVER_APP_OPTIONS_H_
#define BERTH_SERVER_APP_OPTIONS_H_

#include <optional>

#include "berth/config/v1/config.pb.h"
#include "server/access/user_shares.h"
#include "server/audit/audit_chain.h"
#include "server/controllers/lease_keeper.h"
#include "server/history/history_keeper.h"
#include "server/loop/loop.h"

namespace berth {

LoopOptions LoopOptionsFrom(const config::v1::Server& config);
LeaseOptions LeaseOptionsFrom(const config::v1::Server& config, GrantedLease granted_before);
AuditLimits AuditLimitsFrom(const config::v1::Server& config);
// Of the usage history; nullopt: there is none. `in_memory`: like the store, in tests.
std::optional<HistoryOptions> HistoryOptionsFrom(const config::v1::Server& config, bool in_memory);
UserLimits UserLimitsFrom(const config::v1::Server& config);

}  // namespace berth

#endif  // BERTH_SERVER_APP_OPTIONS_H_
