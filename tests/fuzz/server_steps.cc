// The steps for a server: every unary call of the API, and the other events.
#include <google/protobuf/duration.pb.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <tuple>
#include <utility>

#include "core/base/check.h"
#include "server/access/rpc_list.h"
#include "server/convert/values.h"
#include "server/services/agent_service.h"
#include "server/services/watch_service.h"
#include "tests/fuzz/server_world.h"

namespace berth::fuzz {
namespace {

struct Kind {
  absl::string_view name;
  std::function<void(ServerWorld&, const Step&)> run;
};

using Process = ServerWorld::Process;

// Streams have steps of their own, below.
constexpr std::pair<absl::string_view, absl::string_view> kStreams[] = {
    {"Connect", "Agent"},
    {"Watch", "Watch"},
    {"ReadLogs", "ReadLog"},
    {"Exec", "OpenExec"},
    {"CopyStore", "OpenExec"}};  // of a server with high availability: without, it is refused

template <class Service>
constexpr auto kMemberOf = std::get<std::unique_ptr<Service> Process::*>(
    std::tuple(&Process::jobs, &Process::queues, &Process::nodes, &Process::cluster,
               &Process::explain, &Process::hyper_nodes, &Process::access, &Process::audits));

template <class Service, class Request, class Response>
void AddCall(std::vector<Kind>* kinds, absl::string_view name,
             grpc::ServerUnaryReactor* (Service::*method)(grpc::CallbackServerContext*,
                                                          const Request*, Response*)) {
  kinds->push_back({name, [method](ServerWorld& world, const Step& step) {
                      world.Call(*(world.process().*kMemberOf<Service>), method, step.body);
                    }});
}

template <class Stream>
void AddCall(std::vector<Kind>*, absl::string_view name, Stream) {
  const auto is_it = [&](const auto& stream) { return stream.first == name; };
  BERTH_CHECK(std::any_of(std::begin(kStreams), std::end(kStreams), is_it));
}

template <class Message>
Message Read(const Step& step) {
  Message message;
  ReadMessage(step.body, &message);
  return message;
}

// Of every method in the protos, so that none is forgotten.
std::vector<Kind> Calls() {
  std::vector<Kind> kinds;
#define BERTH_FUZZ_CALL(service, method) AddCall(&kinds, #method, &service::method);
  BERTH_RPCS(BERTH_FUZZ_CALL)
#undef BERTH_FUZZ_CALL
  return kinds;
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
  for (const auto& [method, step] : kStreams) {
    const auto is_it = [step = step](const Kind& kind) { return kind.name == step; };
    BERTH_CHECK(std::any_of(kinds.begin(), kinds.end(), is_it));
  }
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
