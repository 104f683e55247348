// The steps for a server: every unary call of the API, and the other events.
#include <google/protobuf/duration.pb.h>

#include <algorithm>
#include <functional>

#include "server/convert/values.h"
#include "tests/fuzz/server_world.h"

namespace berth::fuzz {
namespace {

struct Kind {
  absl::string_view name;
  std::function<void(ServerWorld&, const Step&)> run;
};

// A call of a service; `of` is its member in the process.
template <class Service, class Request, class Response>
Kind Rpc(absl::string_view name, std::unique_ptr<Service> ServerWorld::Process::*of,
         grpc::ServerUnaryReactor* (Service::*method)(grpc::CallbackServerContext*, const Request*,
                                                      Response*)) {
  return {name, [of, method](ServerWorld& world, const Step& step) {
            world.Call(*(world.process().*of), method, step.body);
          }};
}

template <class Message>
Message Read(const Step& step) {
  Message message;
  ReadMessage(step.body, &message);
  return message;
}

std::vector<Kind> Calls() {
  using P = ServerWorld::Process;
  return {
      Rpc("SubmitJobs", &P::jobs, &JobService::SubmitJobs),
      Rpc("GetJob", &P::jobs, &JobService::GetJob),
      Rpc("ListJobs", &P::jobs, &JobService::ListJobs),
      Rpc("ListTasks", &P::jobs, &JobService::ListTasks),
      Rpc("UpdateJob", &P::jobs, &JobService::UpdateJob),
      Rpc("CancelJob", &P::jobs, &JobService::CancelJob),
      Rpc("SuspendJob", &P::jobs, &JobService::SuspendJob),
      Rpc("ResumeJob", &P::jobs, &JobService::ResumeJob),
      Rpc("DeleteJob", &P::jobs, &JobService::DeleteJob),
      Rpc("CreateQueue", &P::queues, &QueueService::CreateQueue),
      Rpc("GetQueue", &P::queues, &QueueService::GetQueue),
      Rpc("ListQueues", &P::queues, &QueueService::ListQueues),
      Rpc("UpdateQueue", &P::queues, &QueueService::UpdateQueue),
      Rpc("DeleteQueue", &P::queues, &QueueService::DeleteQueue),
      Rpc("OpenQueue", &P::queues, &QueueService::OpenQueue),
      Rpc("CloseQueue", &P::queues, &QueueService::CloseQueue),
      Rpc("ListQueueShares", &P::queues, &QueueService::ListQueueShares),
      Rpc("GetNode", &P::nodes, &NodeService::GetNode),
      Rpc("ListNodes", &P::nodes, &NodeService::ListNodes),
      Rpc("CordonNode", &P::nodes, &NodeService::CordonNode),
      Rpc("UncordonNode", &P::nodes, &NodeService::UncordonNode),
      Rpc("DrainNode", &P::nodes, &NodeService::DrainNode),
      Rpc("DeleteNode", &P::nodes, &NodeService::DeleteNode),
      Rpc("GetClusterInfo", &P::cluster, &ClusterService::GetClusterInfo),
      Rpc("Backup", &P::cluster, &ClusterService::Backup),
      Rpc("Backup", &P::cluster, &ClusterService::Backup),
      Rpc("ReloadConfig", &P::cluster, &ClusterService::ReloadConfig),
      Rpc("FinalizeUpgrade", &P::cluster, &ClusterService::FinalizeUpgrade),
      Rpc("ListMembers", &P::cluster, &ClusterService::ListMembers),
      Rpc("HandOver", &P::cluster, &ClusterService::HandOver),
      Rpc("RepairEtcd", &P::cluster, &ClusterService::RepairEtcd),
      Rpc("ExplainJob", &P::explain, &ExplainService::ExplainJob),
      Rpc("PlanJob", &P::explain, &ExplainService::PlanJob),
      Rpc("EstimateJob", &P::explain, &ExplainService::EstimateJob),
      Rpc("WhatIf", &P::explain, &ExplainService::WhatIf),
      Rpc("CreateHyperNode", &P::hyper_nodes, &HyperNodeService::CreateHyperNode),
      Rpc("GetHyperNode", &P::hyper_nodes, &HyperNodeService::GetHyperNode),
      Rpc("ListHyperNodes", &P::hyper_nodes, &HyperNodeService::ListHyperNodes),
      Rpc("UpdateHyperNode", &P::hyper_nodes, &HyperNodeService::UpdateHyperNode),
      Rpc("DeleteHyperNode", &P::hyper_nodes, &HyperNodeService::DeleteHyperNode),
      Rpc("ApplyHyperNodes", &P::hyper_nodes, &HyperNodeService::ApplyHyperNodes),
      Rpc("PauseCluster", &P::cluster, &ClusterService::PauseCluster),
      Rpc("ResumeCluster", &P::cluster, &ClusterService::ResumeCluster),
  };
}

std::vector<Kind> AllKinds() {
  std::vector<Kind> kinds = Calls();
  const std::vector<Kind> others = {
      {"Agent", [](ServerWorld& w, const Step& s) { w.Send(s.slot, Read<v1::AgentMessage>(s)); }},
      {"Open", [](ServerWorld& w, const Step& s) { w.Open(s.slot); }},
      {"Close", [](ServerWorld& w, const Step& s) { w.Close(s.slot); }},
      {"Work", [](ServerWorld& w, const Step& s) { w.Work(s.slot); }},
      {"Watch", [](ServerWorld& w, const Step& s) { w.Watch(Read<v1::WatchRequest>(s)); }},
      {"ReadLog", [](ServerWorld& w, const Step& s) { w.ReadLog(Read<v1::ReadLog>(s)); }},
      {"OpenExec", [](ServerWorld& w, const Step& s) { w.OpenExec(Read<v1::OpenExec>(s)); }},
      {"Advance",
       [](ServerWorld& w, const Step& s) {
         w.Advance(DurationFrom(Read<google::protobuf::Duration>(s)));
       }},
      {"Configure",
       [](ServerWorld& w, const Step& s) { w.Configure(Read<config::v1::Server>(s)); }},
      {"Hold", [](ServerWorld& w, const Step& s) { w.Hold(s.slot != 0); }},
      {"Restart", [](ServerWorld& w, const Step&) { w.Restart(); }},
  };
  kinds.insert(kinds.end(), others.begin(), others.end());
  return kinds;
}

const Kind& Find(absl::string_view name) {
  static const auto* kinds = new std::vector<Kind>(AllKinds());
  const auto found = std::find_if(kinds->begin(), kinds->end(),
                                  [&](const Kind& kind) { return kind.name == name; });
  return found != kinds->end() ? *found : kinds->at(KindOf(name, kinds->size()));
}

}  // namespace

void RunSteps(ServerWorld& world, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    Find(step.name).run(world, step);
    world.Settle();
  }
}

}  // namespace berth::fuzz
