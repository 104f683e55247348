// Requests to agents: numbers, the limit, and who reports an end.
#include "server/controllers/open_requests.h"

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "support/errors.h"
#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::World;
using Requests = OpenRequests<std::string>;
using Fate = Requests::Fate;

v1::ServerMessage Message(AgentRequestId id) {
  v1::ServerMessage message;
  message.mutable_cancel_log()->set_request(id);
  return message;
}

struct Fixture {
  Fixture() : agent(&world, "n1"), requests(world.gateway.get(), 3, "too many of them") {
    agent.Connect();
    node = world.node("n1").id;
  }
  absl::StatusOr<AgentRequestId> Open(const std::string& client) {
    return requests.Open(node, client, Message);
  }
  // Clients whose requests ended with the session.
  std::vector<std::string> End(SessionId session) {
    std::vector<std::string> clients;
    requests.EndSession(session, [&](const std::string& client, const absl::Status& gone) {
      CHECK(absl::IsUnavailable(gone));
      CHECK(gone.message() == "the node has disconnected");
      CHECK(requests.size() == 0);  // without the lock, after all are removed
      clients.push_back(client);
    });
    return clients;
  }
  // What the client's requests received, and whether it was open.
  bool Receive(SessionId session, AgentRequestId id, Fate fate, std::string* seen) {
    return requests.Receive(session, id, [&](const std::string& client) {
      *seen += client;
      return fate;
    });
  }
  World world;
  Agent agent;
  NodeId node;
  Requests requests;
};

TEST_CASE_METHOD(Fixture, "open requests: the agent gets the number that the client gets") {
  const absl::StatusOr<AgentRequestId> first = Open("a"), second = Open("b");
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(*first != *second);
  const auto sent = agent.link->Of(v1::ServerMessage::kCancelLog);
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].cancel_log().request() == *first);
  CHECK(sent[1].cancel_log().request() == *second);
  CHECK(requests.size() == 2);
}

TEST_CASE_METHOD(Fixture, "open requests: numbers are not reused, and places are") {
  std::vector<AgentRequestId> ids;
  for (const char* client : {"a", "b", "c"}) ids.push_back(Open(client).value());
  const absl::Status refused = Open("d").status();
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(refused.message() == "too many of them");
  CHECK(RetryDelayOf(refused) == absl::Seconds(10));
  CHECK(agent.link->Of(v1::ServerMessage::kCancelLog).size() == 3);
  CHECK(requests.Remove(ids[2]) == agent.session);
  const absl::StatusOr<AgentRequestId> next = Open("d");
  REQUIRE(next.ok());
  CHECK(*next > ids[2]);
}

TEST_CASE_METHOD(Fixture, "open requests: an answer needs the session and the number") {
  const AgentRequestId id = Open("a").value();
  std::string seen;
  CHECK_FALSE(Receive(agent.session + 1, id, Fate::kEnded, &seen));
  CHECK_FALSE(Receive(agent.session, id + 1, Fate::kEnded, &seen));
  CHECK(seen.empty());
  CHECK(Receive(agent.session, id, Fate::kOpen, &seen));
  CHECK(Receive(agent.session, id, Fate::kEnded, &seen));
  CHECK(seen == "aa");
  CHECK_FALSE(Receive(agent.session, id, Fate::kOpen, &seen));
  CHECK(seen == "aa");
  CHECK(requests.size() == 0);
}

TEST_CASE_METHOD(Fixture, "open requests: nothing happens to a request that has ended") {
  const AgentRequestId id = Open("a").value();
  int changes = 0;
  const auto count = [&](std::string&) { ++changes; };
  requests.Update(id, count);
  requests.Send(id, Message(id));
  CHECK(changes == 1);
  CHECK(agent.link->Of(v1::ServerMessage::kCancelLog).size() == 2);
  CHECK(requests.Remove(id) == agent.session);
  CHECK(requests.Remove(id) == 0);
  requests.Update(id, count);
  requests.Send(id, Message(id));
  CHECK(changes == 1);
  CHECK(agent.link->Of(v1::ServerMessage::kCancelLog).size() == 2);
  CHECK(End(agent.session).empty());
}

TEST_CASE_METHOD(Fixture, "open requests: a session ends only its own requests") {
  Agent other(&world, "n2");
  other.Connect();
  REQUIRE(Open("a").ok());
  const absl::StatusOr<AgentRequestId> kept = requests.Open(world.node("n2").id, "b", Message);
  REQUIRE(kept.ok());
  REQUIRE(Open("c").ok());
  std::vector<std::string> clients;
  requests.EndSession(agent.session, [&](const std::string& client, const absl::Status&) {
    clients.push_back(client);
  });
  CHECK(clients == std::vector<std::string>{"a", "c"});
  CHECK(requests.size() == 1);
  CHECK(requests.Remove(*kept) == other.session);
}

TEST_CASE_METHOD(Fixture, "open requests: a node without a session is not asked") {
  agent.Disconnect();
  bool asked = false;
  const absl::Status refused = requests
                                   .Open(node, "a",
                                         [&](AgentRequestId id) {
                                           asked = true;
                                           return Message(id);
                                         })
                                   .status();
  CHECK(absl::IsUnavailable(refused));
  CHECK(refused.message() == "the node is not connected");
  CHECK_FALSE(asked);
  CHECK(requests.size() == 0);
}

// The session ends after the request got its place and before the message is sent.
TEST_CASE_METHOD(Fixture, "open requests: whoever removes a request reports its end, once") {
  const bool session_first = GENERATE(false, true);
  CAPTURE(session_first);
  std::vector<std::string> reported;
  const absl::StatusOr<AgentRequestId> opened = requests.Open(node, "a", [&](AgentRequestId id) {
    const SessionId session = agent.session;
    agent.Disconnect();
    if (session_first) reported = End(session);
    return Message(id);
  });
  CHECK(opened.ok() == session_first);
  CHECK(reported == (session_first ? std::vector<std::string>{"a"} : std::vector<std::string>{}));
  if (!session_first) CHECK(absl::IsUnavailable(opened.status()));
  CHECK(requests.size() == 0);
}

// Each thread tries to end every request in its own way; ThreadSanitizer watches.
TEST_CASE("open requests: of racing threads, exactly one ends a request") {
  constexpr size_t kRequests = 2000;
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const NodeId node = world.node("n1").id;
  const SessionId session = agent.session;
  OpenRequests<size_t> requests(world.gateway.get(), 8, "too many of them");
  std::array<std::atomic<int>, kRequests> ends{};
  std::atomic<size_t> opened{0};  // numbers begin at 1
  const auto until_all = [&](auto&& step) {
    while (opened < kRequests || requests.size() > 0) step();
  };
  std::thread cancels([&] {
    for (AgentRequestId id = 1; id <= kRequests; ++id) {
      while (opened < id) std::this_thread::yield();
      if (id % 3 == 0 && requests.Remove(id) == session) ++ends[id - 1];
    }
  });
  std::thread answers([&] {
    AgentRequestId id = 0;
    until_all([&] {
      id = id % kRequests + 1;
      size_t client = kRequests;
      const auto look = [&](size_t mine) {
        client = mine;
        return OpenRequests<size_t>::Fate::kEnded;
      };
      if (requests.Receive(session, id, look)) ++ends[client];
    });
  });
  std::thread sessions([&] {
    until_all([&] {
      requests.EndSession(session, [&](size_t client, const absl::Status&) { ++ends[client]; });
      std::this_thread::yield();
    });
  });
  size_t refused = 0;
  for (size_t client = 0; client < kRequests;) {
    const absl::StatusOr<AgentRequestId> id = requests.Open(node, client, Message);
    refused += id.ok() ? 0 : 1;
    if (!id.ok()) continue;
    CHECK(*id == ++client);
    opened = client;
  }
  for (std::thread* thread : {&cancels, &answers, &sessions}) thread->join();
  CHECK(requests.size() == 0);
  CHECK(std::all_of(ends.begin(), ends.end(), [](const auto& count) { return count == 1; }));
  CHECK(agent.link->Of(v1::ServerMessage::kCancelLog).size() == kRequests);
  INFO(refused << " refused");
}

}  // namespace
}  // namespace berth
