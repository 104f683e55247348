#include "clients/cli/completion_names.h"

#include "absl/strings/match.h"
#include "clients/cli/completion.h"

namespace berth {
namespace {

constexpr size_t kMaxNamePatternBytes = 128;  // limit of the server

class NameFinder {
 public:
  NameFinder(Session& session, const std::string& prefix)
      : session_(session),
        prefix_(prefix),
        end_(session.io().environment.clock->Steady() + kNamesTimeout) {}

  template <class Stub, class Request, class Response, class Items>
  void Find(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
            const Request& request, const Items& items) {
    session_.options.client.timeout = kNamesTimeout;
    const absl::StatusOr<Client*> client = session_.client();
    if (!client.ok()) return;
    (*client)
        ->List<Stub, Request, Response>(method, request,
                                        [&](const Response& page) {
                                          for (const auto& item : items(page)) Add(item.name());
                                          return !Done();
                                        })
        .IgnoreError();
  }
  std::vector<std::string> names() const { return names_; }

 private:
  bool Done() const {
    return names_.size() >= kMaxCompletedNames || session_.io().environment.clock->Steady() >= end_;
  }
  void Add(const std::string& name) {
    if (absl::StartsWith(name, prefix_) && names_.size() < kMaxCompletedNames)
      names_.push_back(name);
  }

  Session& session_;
  const std::string prefix_;
  const absl::Duration end_;
  std::vector<std::string> names_;
};

// "ll" -> "ll*", a pattern for the server; "" if the server does not accept it.
std::string PatternOf(const std::string& prefix) {
  constexpr char kOfNames[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
  const bool plain = prefix.find_first_not_of(kOfNames) == std::string::npos;
  return plain && !prefix.empty() && prefix.size() < kMaxNamePatternBytes ? prefix + "*" : "";
}

}  // namespace

std::vector<std::string> NamesOf(Session& session, const std::string& noun,
                                 const std::string& prefix, bool active_only) {
  NameFinder finder(session, prefix);
  if (noun == "job") {
    v1::ListJobsRequest request;
    request.set_page_size(kMaxCompletedNames);
    request.set_order(v1::ListJobsRequest::NEWEST_FIRST);
    request.mutable_filter()->set_active_only(active_only);
    request.mutable_filter()->set_name_pattern(PatternOf(prefix));
    finder.Find(&v1::JobService::StubInterface::ListJobs, request,
                [](const v1::ListJobsResponse& page) { return page.jobs(); });
  } else if (noun == "queue") {
    finder.Find(&v1::QueueService::StubInterface::ListQueues, v1::ListQueuesRequest(),
                [](const v1::ListQueuesResponse& page) { return page.queues(); });
  } else if (noun == "priority-class") {
    finder.Find(&v1::PriorityClassService::StubInterface::ListPriorityClasses,
                v1::ListPriorityClassesRequest(), [](const v1::ListPriorityClassesResponse& page) {
                  return page.priority_classes();
                });
  } else if (noun == "node") {
    finder.Find(&v1::NodeService::StubInterface::ListNodes, v1::ListNodesRequest(),
                [](const v1::ListNodesResponse& page) { return page.nodes(); });
  } else if (noun == "hypernode") {
    finder.Find(&v1::HyperNodeService::StubInterface::ListHyperNodes, v1::ListHyperNodesRequest(),
                [](const v1::ListHyperNodesResponse& page) { return page.hyper_nodes(); });
  }
  return finder.names();
}

}  // namespace berth
