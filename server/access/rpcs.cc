#include "server/access/rpcs.h"

#include <array>

#include "core/base/check.h"

namespace berth {
namespace {

#define BERTH_RPC_NAME(service, method) #service "." #method,
constexpr std::array<absl::string_view, kRpcs> kNames = {BERTH_RPCS(BERTH_RPC_NAME)};
#undef BERTH_RPC_NAME

}  // namespace

absl::string_view NameOf(Rpc rpc) { return kNames[static_cast<size_t>(rpc)]; }

RpcNeed NeedOf(Rpc rpc) {
  switch (rpc) {  // without a default: the compiler warns about methods without a row
    case Rpc::kAgentServiceConnect:
      return {Verb::kOperateCluster, Over::kOwnNode};

    case Rpc::kClusterServiceGetClusterInfo:
    case Rpc::kNodeServiceGetNode:
    case Rpc::kNodeServiceListNodes:
    case Rpc::kHyperNodeServiceGetHyperNode:
    case Rpc::kHyperNodeServiceListHyperNodes:
      return {Verb::kReadCluster, Over::kCluster};
    case Rpc::kAuditServiceListAudit:
    case Rpc::kAuditServiceVerifyAudit:
      return {Verb::kReadAudit, Over::kCluster};
    case Rpc::kNodeServiceCordonNode:
    case Rpc::kNodeServiceUncordonNode:
    case Rpc::kNodeServiceDrainNode:
    case Rpc::kHyperNodeServiceCreateHyperNode:
    case Rpc::kHyperNodeServiceUpdateHyperNode:
    case Rpc::kHyperNodeServiceDeleteHyperNode:
    case Rpc::kHyperNodeServiceApplyHyperNodes:
    case Rpc::kClusterServicePauseCluster:
    case Rpc::kClusterServiceResumeCluster:
      return {Verb::kOperateCluster, Over::kCluster};
    case Rpc::kNodeServiceDeleteNode:
      return {Verb::kManageNodes, Over::kCluster};
    case Rpc::kClusterServiceBackup:
    case Rpc::kClusterServiceReloadConfig:
    case Rpc::kClusterServiceFinalizeUpgrade:
      return {Verb::kMaintainCluster, Over::kCluster};

    case Rpc::kQueueServiceGetQueue:
      return {Verb::kReadQueue, Over::kQueue};
    case Rpc::kQueueServiceListQueues:
    case Rpc::kQueueServiceListQueueShares:
      return {Verb::kReadQueue, Over::kRows};
    case Rpc::kQueueServiceCreateQueue:
    case Rpc::kQueueServiceUpdateQueue:
    case Rpc::kQueueServiceDeleteQueue:
    case Rpc::kQueueServiceOpenQueue:
    case Rpc::kQueueServiceCloseQueue:
      return {Verb::kManageQueue, Over::kQueue};

    case Rpc::kJobServiceSubmitJobs:
    case Rpc::kExplainServicePlanJob:
    case Rpc::kExplainServiceEstimateJob:
      return {Verb::kSubmitJob, Over::kQueue};
    case Rpc::kExplainServiceWhatIf:
      return {Verb::kReadCluster, Over::kCluster};
    case Rpc::kJobServiceGetJob:
    case Rpc::kExplainServiceExplainJob:
      return {Verb::kListJobs, Over::kJob};
    case Rpc::kJobServiceListJobs:
    case Rpc::kJobServiceListTasks:
    case Rpc::kWatchServiceWatch:
      return {Verb::kListJobs, Over::kRows};
    case Rpc::kJobServiceUpdateJob:
    case Rpc::kJobServiceCancelJob:
    case Rpc::kJobServiceSuspendJob:
    case Rpc::kJobServiceResumeJob:
    case Rpc::kJobServiceDeleteJob:
      return {Verb::kChangeJob, Over::kJob};
    case Rpc::kJobServiceReadLogs:
      return {Verb::kReadLogs, Over::kJob};
    case Rpc::kJobServiceExec:
      return {Verb::kExec, Over::kJob};
  }
  CheckFailed(__FILE__, __LINE__, "a method of the API");
}

}  // namespace berth
