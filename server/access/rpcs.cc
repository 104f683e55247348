#include "server/access/rpcs.h"

#include <array>

#include "support/task_call.h"

namespace berth {
namespace {

#define BERTH_RPC_NAME(service, method) #service "." #method,
constexpr std::array<absl::string_view, kRpcs> kNames = {BERTH_RPCS(BERTH_RPC_NAME)};
#undef BERTH_RPC_NAME

struct Row {
  Rpc rpc;
  RpcNeed need;
};
constexpr Row kRows[] = {
    {Rpc::kAgentServiceConnect, {Verb::kOperateCluster, Over::kOwnNode, "connect as an agent"}},

    {Rpc::kClusterServiceGetClusterInfo,
     {Verb::kReadCluster, Over::kCluster, "read the cluster's state"}},
    {Rpc::kNodeServiceGetNode, {Verb::kReadCluster, Over::kCluster, "read nodes"}},
    {Rpc::kNodeServiceListNodes, {Verb::kReadCluster, Over::kCluster, "list nodes"}},
    {Rpc::kHyperNodeServiceGetHyperNode, {Verb::kReadCluster, Over::kCluster, "read HyperNodes"}},
    {Rpc::kHyperNodeServiceListHyperNodes, {Verb::kReadCluster, Over::kCluster, "list HyperNodes"}},
    {Rpc::kExplainServiceWhatIf, {Verb::kReadCluster, Over::kCluster, "ask what if"}},
    {Rpc::kHistoryServiceGetCapacity,
     {Verb::kReadCluster, Over::kCluster, "read how the capacity was used"}},
    {Rpc::kAuditServiceListAudit, {Verb::kReadAudit, Over::kCluster, "read the audit log"}},
    {Rpc::kAuditServiceVerifyAudit, {Verb::kReadAudit, Over::kCluster, "verify the audit log"}},
    {Rpc::kNodeServiceCordonNode, {Verb::kOperateCluster, Over::kCluster, "cordon nodes"}},
    {Rpc::kNodeServiceUncordonNode, {Verb::kOperateCluster, Over::kCluster, "uncordon nodes"}},
    {Rpc::kNodeServiceDrainNode, {Verb::kOperateCluster, Over::kCluster, "drain nodes"}},
    {Rpc::kHyperNodeServiceCreateHyperNode,
     {Verb::kOperateCluster, Over::kCluster, "create HyperNodes"}},
    {Rpc::kHyperNodeServiceUpdateHyperNode,
     {Verb::kOperateCluster, Over::kCluster, "update HyperNodes"}},
    {Rpc::kHyperNodeServiceDeleteHyperNode,
     {Verb::kOperateCluster, Over::kCluster, "delete HyperNodes"}},
    {Rpc::kHyperNodeServiceApplyHyperNodes,
     {Verb::kOperateCluster, Over::kCluster, "apply HyperNodes"}},
    {Rpc::kClusterServicePauseCluster,
     {Verb::kOperateCluster, Over::kCluster, "pause the cluster"}},
    {Rpc::kClusterServiceResumeCluster,
     {Verb::kOperateCluster, Over::kCluster, "resume the cluster"}},
    {Rpc::kNodeServiceDeleteNode, {Verb::kManageNodes, Over::kCluster, "delete nodes"}},
    {Rpc::kNodeServiceCreateJoinToken, {Verb::kManageNodes, Over::kCluster, "create join tokens"}},
    {Rpc::kNodeServiceListJoinTokens, {Verb::kManageNodes, Over::kCluster, "list join tokens"}},
    {Rpc::kNodeServiceRevokeJoinToken, {Verb::kManageNodes, Over::kCluster, "revoke join tokens"}},
    {Rpc::kNodeServiceAdmitNode, {Verb::kAdmitNodes, Over::kCluster, "admit nodes"}},
    {Rpc::kClusterServiceBackup, {Verb::kMaintainCluster, Over::kCluster, "back up the cluster"}},
    {Rpc::kClusterServiceReloadConfig,
     {Verb::kMaintainCluster, Over::kCluster, "reload the configuration"}},
    {Rpc::kClusterServiceFinalizeUpgrade,
     {Verb::kMaintainCluster, Over::kCluster, "finalize an upgrade"}},
    {Rpc::kClusterServiceListMembers, {Verb::kReadCluster, Over::kCluster, "list the servers"}},
    {Rpc::kClusterServiceHandOver,
     {Verb::kMaintainCluster, Over::kCluster, "hand over to another server"}},
    {Rpc::kClusterServiceRepairEtcd, {Verb::kMaintainCluster, Over::kCluster, "repair etcd"}},
    {Rpc::kClusterServiceCopyStore, {Verb::kMaintainCluster, Over::kServer, "copy the store"}},

    {Rpc::kQueueServiceGetQueue, {Verb::kReadQueue, Over::kQueue, "read"}},
    {Rpc::kQueueServiceListQueues, {Verb::kReadQueue, Over::kRows, "list"}},
    {Rpc::kQueueServiceListQueueShares, {Verb::kReadQueue, Over::kRows, "list the shares of"}},
    {Rpc::kHistoryServiceGetUsage, {Verb::kReadQueue, Over::kRows, "read the usage of"}},
    {Rpc::kQueueServiceCreateQueue, {Verb::kManageQueue, Over::kQueue, "create queues in"}},
    {Rpc::kQueueServiceUpdateQueue, {Verb::kManageQueue, Over::kQueue, "update"}},
    {Rpc::kQueueServiceDeleteQueue, {Verb::kManageQueue, Over::kQueue, "delete queues in"}},
    {Rpc::kQueueServiceOpenQueue, {Verb::kManageQueue, Over::kQueue, "open"}},
    {Rpc::kQueueServiceCloseQueue, {Verb::kManageQueue, Over::kQueue, "close"}},

    {Rpc::kPriorityClassServiceGetPriorityClass,
     {Verb::kReadQueue, Over::kRows, "read priority classes"}},
    {Rpc::kPriorityClassServiceListPriorityClasses,
     {Verb::kReadQueue, Over::kRows, "list priority classes"}},
    {Rpc::kPriorityClassServiceCreatePriorityClass,
     {Verb::kOperateCluster, Over::kCluster, "create priority classes"}},
    {Rpc::kPriorityClassServiceUpdatePriorityClass,
     {Verb::kOperateCluster, Over::kCluster, "update priority classes"}},
    {Rpc::kPriorityClassServiceDeletePriorityClass,
     {Verb::kOperateCluster, Over::kCluster, "delete priority classes"}},

    {Rpc::kJobServiceSubmitJobs, {Verb::kSubmitJob, Over::kQueue, "submit jobs to"}},
    {Rpc::kExplainServicePlanJob, {Verb::kSubmitJob, Over::kQueue, "plan jobs in"}},
    {Rpc::kJobServiceGetJob, {Verb::kListJobs, Over::kJob, "read"}},
    {Rpc::kExplainServiceExplainJob, {Verb::kListJobs, Over::kJob, "explain"}},
    {Rpc::kExplainServiceEstimateJob, {Verb::kListJobs, Over::kJob, "estimate the start of"}},
    {Rpc::kJobServiceListJobs, {Verb::kListJobs, Over::kRows, "list"}},
    {Rpc::kJobServiceListTasks, {Verb::kListJobs, Over::kRows, "list the tasks of"}},
    {Rpc::kWatchServiceWatch, {Verb::kListJobs, Over::kRows, "watch"}},
    {Rpc::kHistoryServiceListEndedJobs, {Verb::kListJobs, Over::kRows, "list the ended jobs of"}},
    {Rpc::kJobServiceUpdateJob, {Verb::kChangeJob, Over::kJob, "update"}},
    {Rpc::kJobServiceCancelJob, {Verb::kChangeJob, Over::kJob, "cancel"}},
    {Rpc::kJobServiceSuspendJob, {Verb::kChangeJob, Over::kJob, "suspend"}},
    {Rpc::kJobServiceResumeJob, {Verb::kChangeJob, Over::kJob, "resume"}},
    {Rpc::kJobServiceRequeueJob, {Verb::kRequeueJob, Over::kJob, "requeue"}},
    {Rpc::kJobServiceDeleteJob, {Verb::kChangeJob, Over::kJob, "delete"}},
    {Rpc::kJobServiceReadLogs, {Verb::kReadLogs, Over::kJob, "read the output of"}},
    {Rpc::kJobServiceExec, {Verb::kExec, Over::kJob, "run commands in"}},

    {Rpc::kAccessServiceWhoAmI, {Verb::kGrant, Over::kAnyone, "ask who they are"}},
    {Rpc::kAccessServiceGetAccess, {Verb::kGrant, Over::kRows, "read the rules of"}},
    {Rpc::kAccessServiceChangeAccess, {Verb::kGrant, Over::kRows, "change the rules of"}},
    {Rpc::kAccessServiceCheckAccess, {Verb::kGrant, Over::kRows, "check the rules of"}},
};

constexpr size_t RowsOf(Rpc rpc) {
  size_t rows = 0;
  for (const Row& row : kRows) rows += row.rpc == rpc ? 1 : 0;
  return rows;
}
#define BERTH_RPC_ROW(service, method) \
  static_assert(RowsOf(Rpc::k##service##method) == 1, #service "." #method " needs one row");
BERTH_RPCS(BERTH_RPC_ROW)
#undef BERTH_RPC_ROW

constexpr std::array<RpcNeed, kRpcs> kNeeds = [] {
  std::array<RpcNeed, kRpcs> needs{};
  for (const Row& row : kRows) needs[static_cast<size_t>(row.rpc)] = row.need;
  return needs;
}();

}  // namespace

absl::string_view NameOf(Rpc rpc) { return kNames[static_cast<size_t>(rpc)]; }

RpcNeed NeedOf(Rpc rpc) { return kNeeds[static_cast<size_t>(rpc)]; }

OnStandby OnStandbyOf(Rpc rpc) {
  switch (rpc) {
    case Rpc::kClusterServiceListMembers:
    case Rpc::kClusterServiceCopyStore:
      return OnStandby::kYes;
    case Rpc::kClusterServiceGetClusterInfo:
    case Rpc::kNodeServiceGetNode:
    case Rpc::kNodeServiceListNodes:
    case Rpc::kHyperNodeServiceGetHyperNode:
    case Rpc::kHyperNodeServiceListHyperNodes:
    case Rpc::kQueueServiceGetQueue:
    case Rpc::kQueueServiceListQueues:
    case Rpc::kPriorityClassServiceGetPriorityClass:
    case Rpc::kPriorityClassServiceListPriorityClasses:
    case Rpc::kJobServiceGetJob:
    case Rpc::kJobServiceListJobs:
    case Rpc::kJobServiceListTasks:
    case Rpc::kAuditServiceListAudit:
    case Rpc::kAuditServiceVerifyAudit:
    case Rpc::kHistoryServiceGetUsage:
    case Rpc::kHistoryServiceGetCapacity:
    case Rpc::kHistoryServiceListEndedJobs:
    case Rpc::kAccessServiceWhoAmI:
    case Rpc::kAccessServiceGetAccess:
    case Rpc::kAccessServiceCheckAccess:
      return OnStandby::kIfStale;
    default:
      return OnStandby::kNo;
  }
}

bool TasksMayCall(Rpc rpc) { return IsTaskMethod(NameOf(rpc)); }

}  // namespace berth
