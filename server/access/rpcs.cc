#include "server/access/rpcs.h"

#include <array>

#include "core/base/check.h"
#include "support/task_call.h"

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
      return {Verb::kOperateCluster, Over::kOwnNode, "connect as an agent"};

    case Rpc::kClusterServiceGetClusterInfo:
      return {Verb::kReadCluster, Over::kCluster, "read the cluster's state"};
    case Rpc::kNodeServiceGetNode:
      return {Verb::kReadCluster, Over::kCluster, "read nodes"};
    case Rpc::kNodeServiceListNodes:
      return {Verb::kReadCluster, Over::kCluster, "list nodes"};
    case Rpc::kHyperNodeServiceGetHyperNode:
      return {Verb::kReadCluster, Over::kCluster, "read HyperNodes"};
    case Rpc::kHyperNodeServiceListHyperNodes:
      return {Verb::kReadCluster, Over::kCluster, "list HyperNodes"};
    case Rpc::kExplainServiceWhatIf:
      return {Verb::kReadCluster, Over::kCluster, "ask what if"};
    case Rpc::kAuditServiceListAudit:
      return {Verb::kReadAudit, Over::kCluster, "read the audit log"};
    case Rpc::kAuditServiceVerifyAudit:
      return {Verb::kReadAudit, Over::kCluster, "verify the audit log"};
    case Rpc::kNodeServiceCordonNode:
      return {Verb::kOperateCluster, Over::kCluster, "cordon nodes"};
    case Rpc::kNodeServiceUncordonNode:
      return {Verb::kOperateCluster, Over::kCluster, "uncordon nodes"};
    case Rpc::kNodeServiceDrainNode:
      return {Verb::kOperateCluster, Over::kCluster, "drain nodes"};
    case Rpc::kHyperNodeServiceCreateHyperNode:
      return {Verb::kOperateCluster, Over::kCluster, "create HyperNodes"};
    case Rpc::kHyperNodeServiceUpdateHyperNode:
      return {Verb::kOperateCluster, Over::kCluster, "update HyperNodes"};
    case Rpc::kHyperNodeServiceDeleteHyperNode:
      return {Verb::kOperateCluster, Over::kCluster, "delete HyperNodes"};
    case Rpc::kHyperNodeServiceApplyHyperNodes:
      return {Verb::kOperateCluster, Over::kCluster, "apply HyperNodes"};
    case Rpc::kClusterServicePauseCluster:
      return {Verb::kOperateCluster, Over::kCluster, "pause the cluster"};
    case Rpc::kClusterServiceResumeCluster:
      return {Verb::kOperateCluster, Over::kCluster, "resume the cluster"};
    case Rpc::kNodeServiceDeleteNode:
      return {Verb::kManageNodes, Over::kCluster, "delete nodes"};
    case Rpc::kNodeServiceCreateJoinToken:
      return {Verb::kManageNodes, Over::kCluster, "create join tokens"};
    case Rpc::kNodeServiceListJoinTokens:
      return {Verb::kManageNodes, Over::kCluster, "list join tokens"};
    case Rpc::kNodeServiceRevokeJoinToken:
      return {Verb::kManageNodes, Over::kCluster, "revoke join tokens"};
    case Rpc::kNodeServiceAdmitNode:
      return {Verb::kAdmitNodes, Over::kCluster, "admit nodes"};
    case Rpc::kClusterServiceBackup:
      return {Verb::kMaintainCluster, Over::kCluster, "back up the cluster"};
    case Rpc::kClusterServiceReloadConfig:
      return {Verb::kMaintainCluster, Over::kCluster, "reload the configuration"};
    case Rpc::kClusterServiceFinalizeUpgrade:
      return {Verb::kMaintainCluster, Over::kCluster, "finalize an upgrade"};

    case Rpc::kQueueServiceGetQueue:
      return {Verb::kReadQueue, Over::kQueue, "read"};
    case Rpc::kQueueServiceListQueues:
      return {Verb::kReadQueue, Over::kRows, "list"};
    case Rpc::kQueueServiceListQueueShares:
      return {Verb::kReadQueue, Over::kRows, "list the shares of"};
    case Rpc::kQueueServiceCreateQueue:
      return {Verb::kManageQueue, Over::kQueue, "create queues in"};
    case Rpc::kQueueServiceUpdateQueue:
      return {Verb::kManageQueue, Over::kQueue, "update"};
    case Rpc::kQueueServiceDeleteQueue:
      return {Verb::kManageQueue, Over::kQueue, "delete queues in"};
    case Rpc::kQueueServiceOpenQueue:
      return {Verb::kManageQueue, Over::kQueue, "open"};
    case Rpc::kQueueServiceCloseQueue:
      return {Verb::kManageQueue, Over::kQueue, "close"};

    case Rpc::kJobServiceSubmitJobs:
      return {Verb::kSubmitJob, Over::kQueue, "submit jobs to"};
    case Rpc::kExplainServicePlanJob:
      return {Verb::kSubmitJob, Over::kQueue, "plan jobs in"};
    case Rpc::kJobServiceGetJob:
      return {Verb::kListJobs, Over::kJob, "read"};
    case Rpc::kExplainServiceExplainJob:
      return {Verb::kListJobs, Over::kJob, "explain"};
    case Rpc::kExplainServiceEstimateJob:
      return {Verb::kListJobs, Over::kJob, "estimate the start of"};
    case Rpc::kJobServiceListJobs:
      return {Verb::kListJobs, Over::kRows, "list"};
    case Rpc::kJobServiceListTasks:
      return {Verb::kListJobs, Over::kRows, "list the tasks of"};
    case Rpc::kWatchServiceWatch:
      return {Verb::kListJobs, Over::kRows, "watch"};
    case Rpc::kJobServiceUpdateJob:
      return {Verb::kChangeJob, Over::kJob, "update"};
    case Rpc::kJobServiceCancelJob:
      return {Verb::kChangeJob, Over::kJob, "cancel"};
    case Rpc::kJobServiceSuspendJob:
      return {Verb::kChangeJob, Over::kJob, "suspend"};
    case Rpc::kJobServiceResumeJob:
      return {Verb::kChangeJob, Over::kJob, "resume"};
    case Rpc::kJobServiceDeleteJob:
      return {Verb::kChangeJob, Over::kJob, "delete"};
    case Rpc::kJobServiceReadLogs:
      return {Verb::kReadLogs, Over::kJob, "read the output of"};
    case Rpc::kJobServiceExec:
      return {Verb::kExec, Over::kJob, "run commands in"};

    case Rpc::kAccessServiceWhoAmI:
      return {Verb::kGrant, Over::kAnyone, "ask who they are"};
    case Rpc::kAccessServiceGetAccess:
      return {Verb::kGrant, Over::kRows, "read the rules of"};
    case Rpc::kAccessServiceChangeAccess:
      return {Verb::kGrant, Over::kRows, "change the rules of"};
    case Rpc::kAccessServiceCheckAccess:
      return {Verb::kGrant, Over::kRows, "check the rules of"};
  }
  CheckFailed(__FILE__, __LINE__, "a method of the API");
}

bool TasksMayCall(Rpc rpc) { return IsTaskMethod(NameOf(rpc)); }

}  // namespace berth
