#include "clients/web/methods.h"

#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "berth/v1/access.pb.h"
#include "berth/v1/cluster.pb.h"
#include "berth/v1/explain.pb.h"
#include "berth/v1/hypernode.pb.h"
#include "berth/v1/job.pb.h"
#include "berth/v1/node.pb.h"
#include "berth/v1/priority_class.pb.h"
#include "berth/v1/queue.pb.h"
#include "support/proto_json.h"

namespace berth::web {
namespace {

using google::protobuf::FileDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;

// What the pages use. Nothing here starts a stream, opens a terminal, changes who may do what, or
// stops the server.
constexpr absl::string_view kReads[] = {"AccessService.CheckAccess",
                                        "AccessService.WhoAmI",
                                        "ClusterService.GetClusterInfo",
                                        "ClusterService.ListMembers",
                                        "ExplainService.EstimateJob",
                                        "ExplainService.ExplainJob",
                                        "HyperNodeService.GetHyperNode",
                                        "HyperNodeService.ListHyperNodes",
                                        "JobService.GetJob",
                                        "JobService.ListJobs",
                                        "JobService.ListTasks",
                                        "NodeService.GetNode",
                                        "NodeService.ListNodes",
                                        "PriorityClassService.GetPriorityClass",
                                        "PriorityClassService.ListPriorityClasses",
                                        "QueueService.GetQueue",
                                        "QueueService.ListQueueShares",
                                        "QueueService.ListQueues"};
constexpr absl::string_view kOthers[] = {
    "ExplainService.PlanJob",   "JobService.CancelJob",    "JobService.DeleteJob",
    "JobService.ResumeJob",     "JobService.SubmitJobs",   "JobService.SuspendJob",
    "JobService.UpdateJob",     "NodeService.CordonNode",  "NodeService.DrainNode",
    "NodeService.UncordonNode", "QueueService.CloseQueue", "QueueService.OpenQueue"};

bool IsIn(absl::Span<const absl::string_view> list, absl::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::vector<const FileDescriptor*> ApiFiles() {
  return {berth::v1::WhoAmIRequest::descriptor()->file(),
          berth::v1::GetClusterInfoRequest::descriptor()->file(),
          berth::v1::ExplainJobRequest::descriptor()->file(),
          berth::v1::GetHyperNodeRequest::descriptor()->file(),
          berth::v1::GetJobRequest::descriptor()->file(),
          berth::v1::GetNodeRequest::descriptor()->file(),
          berth::v1::GetPriorityClassRequest::descriptor()->file(),
          berth::v1::GetQueueRequest::descriptor()->file()};
}

using MethodTable = absl::flat_hash_map<std::string, const MethodDescriptor*>;

// By "JobService.GetJob".
MethodTable AllMethods() {
  MethodTable table;
  for (const FileDescriptor* file : ApiFiles()) {
    for (int s = 0; s < file->service_count(); ++s) {
      const ServiceDescriptor* service = file->service(s);
      for (int m = 0; m < service->method_count(); ++m) {
        const MethodDescriptor* method = service->method(m);
        table[absl::StrCat(service->name(), ".", method->name())] = method;
      }
    }
  }
  return table;
}

std::unique_ptr<Message> NewMessage(const google::protobuf::Descriptor* type) {
  return std::unique_ptr<Message>(MessageFactory::generated_factory()->GetPrototype(type)->New());
}

}  // namespace

absl::StatusOr<const MethodDescriptor*> MethodOf(absl::string_view path) {
  static const auto* const kTable = new MethodTable(AllMethods());
  absl::string_view rest = path;
  const bool ours = absl::ConsumePrefix(&rest, "/berth.v1.");
  const std::string name = absl::StrReplaceAll(rest, {{"/", "."}});
  if (ours && (IsIn(kReads, name) || IsIn(kOthers, name))) return kTable->at(name);
  if (ours && kTable->contains(name)) {
    return absl::UnimplementedError(
        absl::StrCat(name, " is not offered over HTTP; use berth, or gRPC"));
  }
  return absl::NotFoundError("there is no such method");
}

bool IsRead(const MethodDescriptor& method) {
  return IsIn(kReads, absl::StrCat(method.service()->name(), ".", method.name()));
}

std::vector<std::string> PassedMethods() {
  std::vector<std::string> names(std::begin(kReads), std::end(kReads));
  for (const absl::string_view name : kOthers) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::string> RequestFromJson(const MethodDescriptor& method,
                                            const std::string& json) {
  const std::unique_ptr<Message> request = NewMessage(method.input_type());
  const auto status =
      google::protobuf::util::JsonStringToMessage(json.empty() ? "{}" : json, request.get());
  if (!status.ok()) {
    const auto text = status.message();
    return absl::InvalidArgumentError(
        absl::StrCat("the body is not a ", method.input_type()->name(),
                     " in JSON: ", absl::string_view(text.data(), text.size()).substr(0, 300)));
  }
  return request->SerializeAsString();
}

absl::StatusOr<std::string> AnswerToJson(const MethodDescriptor& method, const std::string& bytes) {
  const std::unique_ptr<Message> answer = NewMessage(method.output_type());
  if (!answer->ParseFromString(bytes)) {
    return absl::InternalError("berthd sent an answer that does not parse");
  }
  return WriteJson(*answer);
}

}  // namespace berth::web
