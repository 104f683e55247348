#include "server/services/node_service.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/commands/node_steering.h"
#include "server/convert/node.h"
#include "server/services/caller.h"
#include "server/services/name_list.h"
#include "server/validation/drain.h"
#include "server/validation/findings.h"
#include "server/validation/reason.h"
#include "server/validation/text.h"
#include "server/validation/values.h"
#include "support/log.h"

namespace berth {
namespace {

const IdMap<NodeId, Node>& NodesOf(const ClusterState& state) { return state.nodes(); }

bool Matches(const Node& node, const v1::NodeFilter& filter) {
  const auto& states = filter.states();
  if (!states.empty() &&
      std::find(states.begin(), states.end(), NodeStateToApi(node.status.state)) == states.end()) {
    return false;
  }
  for (const auto& [key, value] : filter.labels()) {
    const auto found = node.spec.labels.find(key);
    if (found == node.spec.labels.end() || found->second != value) return false;
  }
  return true;
}

absl::Status ValidateFilter(const v1::NodeFilter& filter) {
  Findings findings;
  const FieldPath root;
  const FieldPath path(root, "filter");
  for (int i = 0; i < filter.states_size(); ++i) {
    CheckEnum({path, "states", i}, filter.states(i), findings);
  }
  CheckLabels(path, "labels", filter.labels(), findings);
  return findings.ToStatus();
}

absl::Status ListNodesIn(ReadView& view, const v1::ListNodesRequest& request,
                         v1::ListNodesResponse& response) {
  if (absl::Status status = ValidateFilter(request.filter()); !status.ok()) return status;
  const std::string scope = FingerprintOf("nodes", request.filter());
  absl::StatusOr<Page> page = ReadPage(request.page_size(), request.page_token(), scope);
  if (!page.ok()) return page.status();
  const auto size = static_cast<size_t>(page->size);
  NamedRows<NodeId> rows =
      FirstByName<NodeId>(view, page->after, size + 1, NodesOf,
                          [&](const ClusterState&, const Node& node) -> std::optional<std::string> {
                            if (!Matches(node, request.filter())) return std::nullopt;
                            return node.spec.name;
                          });
  if (rows.size() > size) {
    rows.pop_back();
    response.set_next_page_token(PageToken(rows.back().first, scope));
  }
  RenderRows<NodeId>(view, rows, NodesOf, [&](const ClusterState& state, const Node& node) {
    RenderNode(state, node, false, response.add_nodes());
  });
  return absl::OkStatus();
}

absl::Status SteerNode(Turn& turn, const absl::StatusOr<NodeSteered>& wish, const std::string& name,
                       const std::string& by, v1::Node& response) {
  if (!wish.ok()) return wish.status();
  const NodeSteered& event = *wish;
  const NodeStatus& status = turn.state().nodes().At(event.id).status;
  const bool changed = status.cordoned != event.cordoned || status.draining != event.draining ||
                       status.reason != event.reason || !(status.drain == event.drain) ||
                       (event.repaired && !(status.faults == NodeFaults{}));
  if (changed) {
    if (absl::Status emitted = turn.Emit(event); !emitted.ok()) return emitted;
    LogInfo("node cordon or drain changed",
            {{"node", name},
             {"cordoned", event.cordoned ? "yes" : "no"},
             {"draining", event.draining ? "yes" : "no"},
             {"mode", v1::NodeDrain::Mode_Name(DrainModeToApi(event.drain.mode))},
             {"devices", event.drain.devices.Count()},
             {"reason", event.reason},
             {"by", by}});
  }
  RenderNode(turn.state(), turn.state().nodes().At(event.id), true, &response);
  if (changed) response.set_etag(absl::StrCat(turn.revision()));
  return absl::OkStatus();
}

absl::Status DeleteNodeIn(Turn& turn, Rights& rights, const std::string& name,
                          const std::string& by) {
  const Node* node = turn.state().FindNode(name);
  if (node == nullptr) return NoSuchNode(turn.state(), rights, name);
  if (node->status.state == NodeState::kReady) {
    return absl::FailedPreconditionError(absl::StrCat(
        "node ", Quoted(name), " is ready; stop its agent and wait until it is silent"));
  }
  if (!node->tasks.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", Quoted(name), " may still run ", node->tasks.size(), " tasks"));
  }
  LogInfo("node deleted", {{"node", name}, {"by", by}});
  return turn.Emit(NodeDeleted{node->id});
}

}  // namespace

grpc::ServerUnaryReactor* NodeService::GetNode(grpc::CallbackServerContext* context,
                                               const v1::GetNodeRequest* request,
                                               v1::Node* response) {
  Reply<v1::Node> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kNodeServiceGetNode, *context);
  ReadOnce(context_, call, std::move(reply),
           [&](const ClusterState& state, Rights& rights, v1::Node& out) {
             const Node* node = state.FindNode(request->name());
             if (node == nullptr) return NoSuchNode(state, rights, request->name());
             RenderNode(state, *node, true, &out);
             if (const auto images = context_.images_of(node->id); images != nullptr)
               *out.mutable_status()->mutable_images() = images->images();
             return absl::OkStatus();
           });
  return reactor;
}

grpc::ServerUnaryReactor* NodeService::ListNodes(grpc::CallbackServerContext* context,
                                                 const v1::ListNodesRequest* request,
                                                 v1::ListNodesResponse* response) {
  Reply<v1::ListNodesResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  AnswerList(context_, context_.CallOf(Rpc::kNodeServiceListNodes, *context), std::move(reply),
             [&](ReadView& view, Rights&) { return ListNodesIn(view, *request, *response); });
  return reactor;
}

grpc::ServerUnaryReactor* NodeService::Steer(Rpc rpc, grpc::CallbackServerContext* context,
                                             v1::Node* response, const std::string& name,
                                             const std::string& reason, Wish wish) {
  Reply<v1::Node> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  if (absl::Status status = ValidateReason(reason); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  const Call call = context_.CallOf(rpc, *context, absl::StrCat("node/", name));
  Write(
      context_, call, std::move(reply), CommandClass::kEssential, 1,
      [wish = std::move(wish), name, by = TextOf(call)](Turn& turn, Rights& rights, v1::Node& out) {
        const Node* node = turn.state().FindNode(name);
        if (node == nullptr) return NoSuchNode(turn.state(), rights, name);
        return SteerNode(turn, wish(*node, turn.now()), name, by, out);
      });
  return reactor;
}

grpc::ServerUnaryReactor* NodeService::CordonNode(grpc::CallbackServerContext* context,
                                                  const v1::CordonNodeRequest* request,
                                                  v1::Node* response) {
  return Steer(Rpc::kNodeServiceCordonNode, context, response, request->name(), request->reason(),
               [request](const Node& node, Time) { return CordonOf(node, request->reason()); });
}

grpc::ServerUnaryReactor* NodeService::UncordonNode(grpc::CallbackServerContext* context,
                                                    const v1::UncordonNodeRequest* request,
                                                    v1::Node* response) {
  return Steer(Rpc::kNodeServiceUncordonNode, context, response, request->name(), "",
               [](const Node& node, Time) { return NodeSteered{.id = node.id, .repaired = true}; });
}

// With wait_for_jobs, jobs may end by themselves: a cordon.
grpc::ServerUnaryReactor* NodeService::DrainNode(grpc::CallbackServerContext* context,
                                                 const v1::DrainNodeRequest* request,
                                                 v1::Node* response) {
  if (absl::Status status = ValidateDrain(*request, context_.store->Format()); !status.ok()) {
    Reply<v1::Node> reply(context, response);
    grpc::ServerUnaryReactor* reactor = reply.reactor();
    reply.Finish(status);
    return reactor;
  }
  return Steer(Rpc::kNodeServiceDrainNode, context, response, request->name(), request->reason(),
               [request](const Node& node, Time now) { return DrainOf(node, *request, now); });
}

grpc::ServerUnaryReactor* NodeService::DeleteNode(grpc::CallbackServerContext* context,
                                                  const v1::DeleteNodeRequest* request,
                                                  v1::DeleteNodeResponse* response) {
  Reply<v1::DeleteNodeResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kNodeServiceDeleteNode, *context,
                                    absl::StrCat("node/", request->name()));
  Write(context_, call, std::move(reply), CommandClass::kNewWork, 1,
        [request, by = TextOf(call)](Turn& turn, Rights& rights, v1::DeleteNodeResponse&) {
          return DeleteNodeIn(turn, rights, request->name(), by);
        });
  return reactor;
}

}  // namespace berth
