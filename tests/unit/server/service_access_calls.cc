#include "tests/unit/server/service_access_calls.h"

#include "absl/strings/str_cat.h"
#include "tests/unit/server/validation_samples.h"

namespace berth::testing {
namespace {

template <class Stub, class Request, class Response>
absl::Status Send(std::unique_ptr<Stub>& stub,
                  grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                  const Request& request) {
  Response response;
  return Call(*stub, method, request, &response);
}

template <class Stub, class Request, class Response>
absl::Status SendNamed(std::unique_ptr<Stub>& stub,
                       grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                    Response*),
                       const std::string& name) {
  Request request;
  request.set_name(name);
  return Send(stub, method, request);
}

void MakeRack(v1::HyperNode* rack) {
  rack->set_name("rack-1");
  rack->mutable_spec()->set_kind("rack");
  rack->mutable_spec()->set_tier(1);
}

absl::Status TryWatch(Door& door) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  auto stream = door.watch->Watch(&context, v1::WatchRequest());
  v1::WatchResponse first;
  if (stream->Read(&first)) {
    context.TryCancel();
    stream->Finish();
    return absl::OkStatus();
  }
  return FromGrpcStatus(stream->Finish());
}

absl::Status TryLogs(Door& door, const Place& at) {
  grpc::ClientContext context;
  v1::ReadLogsRequest request;
  request.set_job(at.job);
  auto stream = door.jobs->ReadLogs(&context, request);
  v1::ReadLogsResponse response;
  while (stream->Read(&response)) {
  }
  return FromGrpcStatus(stream->Finish());
}

absl::Status TryCopyStore(Door& door) {
  grpc::ClientContext context;
  auto stream = door.cluster->CopyStore(&context, v1::CopyStoreRequest());
  v1::CopyStoreResponse response;
  while (stream->Read(&response)) {
  }
  return FromGrpcStatus(stream->Finish());
}

absl::Status TryExec(Door& door, const Place& at) {
  grpc::ClientContext context;
  auto stream = door.jobs->Exec(&context);
  v1::ExecRequest open;
  open.mutable_open()->set_job(at.job);
  open.mutable_open()->add_command("true");
  stream->Write(open);
  v1::ExecResponse response;
  while (stream->Read(&response)) {
  }
  return FromGrpcStatus(stream->Finish());
}

// The server answers a good Hello, and closes the stream after others.
}  // namespace

absl::Status TryConnect(Door& door, const std::string& node) {
  grpc::ClientContext context;
  auto stream = door.agents->Connect(&context);
  v1::AgentMessage message;
  message.mutable_hello()->set_node(node);
  message.mutable_hello()->set_agent_id("a");
  message.mutable_hello()->set_boot_id("b");
  message.mutable_hello()->mutable_inventory()->set_cpu_millis(1000);
  stream->Write(message);
  v1::ServerMessage answer;
  if (stream->Read(&answer)) {
    context.TryCancel();
    stream->Finish();
    return absl::OkStatus();
  }
  return FromGrpcStatus(stream->Finish());
}

namespace {

absl::Status TrySubmit(Door& door, const Place& at) {
  v1::SubmitJobsRequest request;
  request.set_dry_run(true);
  *request.add_jobs() = SmallJob("new", at.queue);
  return Send(door.jobs, &v1::JobService::Stub::SubmitJobs, request);
}

absl::Status TryPlan(Door& door, const Place& at) {
  v1::PlanJobRequest request;
  *request.mutable_job() = SmallJob("new", at.queue);
  return Send(door.explain, &v1::ExplainService::Stub::PlanJob, request);
}

absl::Status TryUpdateJob(Door& door, const Place& at) {
  v1::UpdateJobRequest request;
  request.mutable_job()->set_name(at.job);
  request.mutable_job()->mutable_spec()->set_priority(1);
  request.mutable_update_mask()->add_paths("spec.priority");
  return Send(door.jobs, &v1::JobService::Stub::UpdateJob, request);
}

absl::Status TryCreateQueue(Door& door, const Place& at) {
  v1::CreateQueueRequest request;
  request.mutable_queue()->set_name(at.queue);  // exists already
  request.mutable_queue()->mutable_spec()->set_parent(at.parent);
  return Send(door.queues, &v1::QueueService::Stub::CreateQueue, request);
}

absl::Status TryUpdateQueue(Door& door, const Place& at) {
  v1::UpdateQueueRequest request;
  request.mutable_queue()->set_name(at.queue);
  (*request.mutable_queue()->mutable_spec()->mutable_labels())["a"] = "b";
  request.mutable_update_mask()->add_paths("spec.labels");
  return Send(door.queues, &v1::QueueService::Stub::UpdateQueue, request);
}

absl::Status TryShares(Door& door, const Place& at) {
  v1::ListQueueSharesRequest request;
  request.set_queue(at.queue);
  return Send(door.queues, &v1::QueueService::Stub::ListQueueShares, request);
}

absl::Status TryHyperNode(Door& door, Rpc rpc) {
  v1::CreateHyperNodeRequest create;
  MakeRack(create.mutable_hyper_node());
  v1::UpdateHyperNodeRequest update;
  MakeRack(update.mutable_hyper_node());
  v1::ApplyHyperNodesRequest apply;
  MakeRack(apply.add_hyper_nodes());
  apply.set_validate_only(true);
  using Stub = v1::HyperNodeService::Stub;
  if (rpc == Rpc::kHyperNodeServiceCreateHyperNode)
    return Send(door.hyper_nodes, &Stub::CreateHyperNode, create);
  if (rpc == Rpc::kHyperNodeServiceUpdateHyperNode)
    return Send(door.hyper_nodes, &Stub::UpdateHyperNode, update);
  return Send(door.hyper_nodes, &Stub::ApplyHyperNodes, apply);
}

template <class Request, class Response>
absl::Status DryRun(Door& door,
                    grpc::Status (v1::ClusterService::Stub::*method)(grpc::ClientContext*,
                                                                     const Request&, Response*)) {
  Request request;
  request.set_dry_run(true);
  return Send(door.cluster, method, request);
}

absl::Status TryChangeAccess(Door& door, const Place& at) {
  v1::ChangeAccessRequest request;
  request.set_validate_only(true);
  v1::AccessGrant* grant = request.add_grant();
  grant->mutable_subject()->set_user("somebody");
  grant->set_role("submitter");
  grant->set_queue(at.queue);
  return Send(door.access, &v1::AccessService::Stub::ChangeAccess, request);
}

absl::Status TryCheckAccess(Door& door, const Place& at) {
  v1::CheckAccessRequest request;
  request.set_user("somebody");
  request.set_queue(at.queue);
  request.set_verb("job.read");
  return Send(door.access, &v1::AccessService::Stub::CheckAccess, request);
}

absl::Status TryExplain(Door& door, const Place& at, bool estimate) {
  v1::ExplainJobRequest explain;
  explain.set_job(at.job);
  v1::EstimateJobRequest when;
  when.set_job(at.job);
  return estimate ? Send(door.explain, &v1::ExplainService::Stub::EstimateJob, when)
                  : Send(door.explain, &v1::ExplainService::Stub::ExplainJob, explain);
}

absl::Status TryCreateJoinToken(Door& door) {
  v1::CreateJoinTokenRequest request;
  request.set_nodes("n*");
  return Send(door.nodes, &v1::NodeService::Stub::CreateJoinToken, request);
}

absl::Status TryRevokeJoinToken(Door& door) {
  v1::RevokeJoinTokenRequest request;
  request.set_id("none");
  return Send(door.nodes, &v1::NodeService::Stub::RevokeJoinToken, request);
}

absl::Status TryAdmitNode(Door& door) {
  v1::AdmitNodeRequest request;
  request.set_node("n9");
  request.set_serial("1a");
  return Send(door.nodes, &v1::NodeService::Stub::AdmitNode, request);
}

absl::Status TryPriorityClass(Door& door, Rpc rpc) {
  using Stub = v1::PriorityClassService::Stub;
  v1::CreatePriorityClassRequest create;
  create.mutable_priority_class()->set_name("high");
  v1::UpdatePriorityClassRequest update;
  update.mutable_priority_class()->set_name("none");
  update.mutable_update_mask()->add_paths("value");
  if (rpc == Rpc::kPriorityClassServiceCreatePriorityClass)
    return Send(door.priority_classes, &Stub::CreatePriorityClass, create);
  if (rpc == Rpc::kPriorityClassServiceUpdatePriorityClass)
    return Send(door.priority_classes, &Stub::UpdatePriorityClass, update);
  return SendNamed(door.priority_classes, &Stub::DeletePriorityClass, "none");
}

absl::Status TryListTasks(Door& door, const Place& at) {
  v1::ListTasksRequest request;
  request.set_job(at.job);
  return Send(door.jobs, &v1::JobService::Stub::ListTasks, request);
}

}  // namespace

// Without a default: a method that nobody tries does not compile.
absl::Status Try(Door& d, Rpc rpc, const Place& at) {
  using Jobs = v1::JobService::Stub;
  using Queues = v1::QueueService::Stub;
  using Nodes = v1::NodeService::Stub;
  using Cluster = v1::ClusterService::Stub;
  switch (rpc) {
    case Rpc::kAgentServiceConnect:
      return TryConnect(d, "n1");
    case Rpc::kClusterServiceGetClusterInfo:
      return Send(d.cluster, &Cluster::GetClusterInfo, v1::GetClusterInfoRequest());
    case Rpc::kClusterServicePauseCluster:
      return Send(d.cluster, &Cluster::PauseCluster, v1::PauseClusterRequest());
    case Rpc::kClusterServiceResumeCluster:
      return Send(d.cluster, &Cluster::ResumeCluster, v1::ResumeClusterRequest());
    case Rpc::kClusterServiceBackup:
      return SendNamed(d.cluster, &Cluster::Backup, "b");
    case Rpc::kClusterServiceReloadConfig:
      return DryRun(d, &Cluster::ReloadConfig);
    case Rpc::kClusterServiceFinalizeUpgrade:
      return DryRun(d, &Cluster::FinalizeUpgrade);
    case Rpc::kClusterServiceListMembers:
      return Send(d.cluster, &Cluster::ListMembers, v1::ListMembersRequest());
    case Rpc::kClusterServiceHandOver:
      return Send(d.cluster, &Cluster::HandOver, v1::HandOverRequest());
    case Rpc::kClusterServiceRepairEtcd:
      return Send(d.cluster, &Cluster::RepairEtcd, v1::RepairEtcdRequest());
    case Rpc::kClusterServiceCopyStore:
      return TryCopyStore(d);
    case Rpc::kNodeServiceGetNode:
      return SendNamed(d.nodes, &Nodes::GetNode, "n9");
    case Rpc::kNodeServiceListNodes:
      return Send(d.nodes, &Nodes::ListNodes, v1::ListNodesRequest());
    case Rpc::kNodeServiceCordonNode:
      return SendNamed(d.nodes, &Nodes::CordonNode, "n9");
    case Rpc::kNodeServiceUncordonNode:
      return SendNamed(d.nodes, &Nodes::UncordonNode, "n9");
    case Rpc::kNodeServiceDrainNode:
      return SendNamed(d.nodes, &Nodes::DrainNode, "n9");
    case Rpc::kNodeServiceDeleteNode:
      return SendNamed(d.nodes, &Nodes::DeleteNode, "n9");
    case Rpc::kNodeServiceCreateJoinToken:
      return TryCreateJoinToken(d);
    case Rpc::kNodeServiceListJoinTokens:
      return Send(d.nodes, &Nodes::ListJoinTokens, v1::ListJoinTokensRequest());
    case Rpc::kNodeServiceRevokeJoinToken:
      return TryRevokeJoinToken(d);
    case Rpc::kNodeServiceAdmitNode:
      return TryAdmitNode(d);
    case Rpc::kHyperNodeServiceGetHyperNode:
      return SendNamed(d.hyper_nodes, &v1::HyperNodeService::Stub::GetHyperNode, "none");
    case Rpc::kHyperNodeServiceListHyperNodes:
      return Send(d.hyper_nodes, &v1::HyperNodeService::Stub::ListHyperNodes,
                  v1::ListHyperNodesRequest());
    case Rpc::kHyperNodeServiceDeleteHyperNode:
      return SendNamed(d.hyper_nodes, &v1::HyperNodeService::Stub::DeleteHyperNode, "none");
    case Rpc::kHyperNodeServiceCreateHyperNode:
    case Rpc::kHyperNodeServiceUpdateHyperNode:
    case Rpc::kHyperNodeServiceApplyHyperNodes:
      return TryHyperNode(d, rpc);
    case Rpc::kQueueServiceGetQueue:
      return SendNamed(d.queues, &Queues::GetQueue, at.queue);
    case Rpc::kQueueServiceListQueues:
      return Send(d.queues, &Queues::ListQueues, v1::ListQueuesRequest());
    case Rpc::kQueueServiceListQueueShares:
      return TryShares(d, at);
    case Rpc::kQueueServiceCreateQueue:
      return TryCreateQueue(d, at);
    case Rpc::kQueueServiceUpdateQueue:
      return TryUpdateQueue(d, at);
    case Rpc::kQueueServiceDeleteQueue:
      return SendNamed(d.queues, &Queues::DeleteQueue, at.queue);  // it has jobs
    case Rpc::kQueueServiceOpenQueue:
      return SendNamed(d.queues, &Queues::OpenQueue, at.queue);
    case Rpc::kQueueServiceCloseQueue:
      return SendNamed(d.queues, &Queues::CloseQueue, at.queue);
    case Rpc::kPriorityClassServiceGetPriorityClass:
      return SendNamed(d.priority_classes, &v1::PriorityClassService::Stub::GetPriorityClass,
                       "none");
    case Rpc::kPriorityClassServiceListPriorityClasses:
      return Send(d.priority_classes, &v1::PriorityClassService::Stub::ListPriorityClasses,
                  v1::ListPriorityClassesRequest());
    case Rpc::kPriorityClassServiceCreatePriorityClass:
    case Rpc::kPriorityClassServiceUpdatePriorityClass:
    case Rpc::kPriorityClassServiceDeletePriorityClass:
      return TryPriorityClass(d, rpc);
    case Rpc::kJobServiceSubmitJobs:
      return TrySubmit(d, at);
    case Rpc::kJobServiceGetJob:
      return SendNamed(d.jobs, &Jobs::GetJob, at.job);
    case Rpc::kJobServiceListJobs:
      return Send(d.jobs, &Jobs::ListJobs, v1::ListJobsRequest());
    case Rpc::kJobServiceListTasks:
      return TryListTasks(d, at);
    case Rpc::kJobServiceUpdateJob:
      return TryUpdateJob(d, at);
    case Rpc::kJobServiceCancelJob:
      return SendNamed(d.jobs, &Jobs::CancelJob, at.job);
    case Rpc::kJobServiceSuspendJob:
      return SendNamed(d.jobs, &Jobs::SuspendJob, at.job);
    case Rpc::kJobServiceResumeJob:
      return SendNamed(d.jobs, &Jobs::ResumeJob, at.job);
    case Rpc::kJobServiceRequeueJob:
      return SendNamed(d.jobs, &Jobs::RequeueJob, at.job);
    case Rpc::kJobServiceDeleteJob:
      return SendNamed(d.jobs, &Jobs::DeleteJob, at.kept);
    case Rpc::kJobServiceReadLogs:
      return TryLogs(d, at);
    case Rpc::kJobServiceExec:
      return TryExec(d, at);
    case Rpc::kExplainServiceExplainJob:
      return TryExplain(d, at, false);
    case Rpc::kExplainServiceEstimateJob:
      return TryExplain(d, at, true);
    case Rpc::kExplainServicePlanJob:
      return TryPlan(d, at);
    case Rpc::kExplainServiceWhatIf:
      return Send(d.explain, &v1::ExplainService::Stub::WhatIf, v1::WhatIfRequest());
    case Rpc::kWatchServiceWatch:
      return TryWatch(d);
    case Rpc::kHistoryServiceGetUsage:
      return Send(d.history, &v1::HistoryService::Stub::GetUsage, v1::GetUsageRequest());
    case Rpc::kHistoryServiceGetCapacity:
      return Send(d.history, &v1::HistoryService::Stub::GetCapacity, v1::GetCapacityRequest());
    case Rpc::kHistoryServiceListEndedJobs:
      return Send(d.history, &v1::HistoryService::Stub::ListEndedJobs, v1::ListEndedJobsRequest());
    case Rpc::kAuditServiceListAudit:
      return Send(d.audit, &v1::AuditService::Stub::ListAudit, v1::ListAuditRequest());
    case Rpc::kAuditServiceVerifyAudit:
      return Send(d.audit, &v1::AuditService::Stub::VerifyAudit, v1::VerifyAuditRequest());
    case Rpc::kAccessServiceWhoAmI:
      return Send(d.access, &v1::AccessService::Stub::WhoAmI, v1::WhoAmIRequest());
    case Rpc::kAccessServiceGetAccess:
      return Send(d.access, &v1::AccessService::Stub::GetAccess, v1::GetAccessRequest());
    case Rpc::kAccessServiceChangeAccess:
      return TryChangeAccess(d, at);
    case Rpc::kAccessServiceCheckAccess:
      return TryCheckAccess(d, at);
  }
  return absl::InternalError("a method");
}

// Who calls, and what the rules give them.

}  // namespace berth::testing
