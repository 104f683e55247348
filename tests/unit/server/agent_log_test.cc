// The log relay: requests, order, end of requests, slow readers.
#include <catch2/catch.hpp>

#include "support/errors.h"
#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::World;
using Message = v1::ServerMessage;

struct Reader final : LogReader {
  void OnChunk(v1::LogChunk chunk) override {
    text += chunk.data();
    positions.push_back(chunk.next().stderr_bytes());
  }
  void OnEnd(absl::Status why) override {
    ++ends;
    status = why;
  }
  std::string text;
  std::vector<int64_t> positions;
  int ends = 0;
  absl::Status status;
};

struct Fixture {
  Fixture() : agent(&world, "n1"), reader(std::make_shared<Reader>()) {
    agent.Connect();
    request = {.node = world.node("n1").id,
               .task = {JobId{1}, 3},
               .attempt = 2,
               .stream = v1::STDERR,
               .tail_lines = 10,
               .follow = true};
  }
  void Chunk(LogRelay::RequestId id, std::string data, bool end = false, std::string error = "") {
    v1::AgentMessage message;
    message.set_epoch(agent.epoch);
    message.mutable_log()->set_request(id);
    message.mutable_log()->set_data(std::move(data));
    message.mutable_log()->set_end(end);
    message.mutable_log()->set_error(error);
    agent.Send(message);
  }
  World world;
  Agent agent;
  std::shared_ptr<Reader> reader;
  LogRequest request;
};

TEST_CASE_METHOD(Fixture, "logs: a request reaches the agent, its chunks the reader in order") {
  absl::StatusOr<LogRelay::RequestId> id = world.relay->Open(request, reader);
  REQUIRE(id.ok());
  REQUIRE(agent.link->Of(Message::kReadLog).size() == 1);
  const v1::ReadLog read = agent.link->Of(Message::kReadLog)[0].read_log();
  CHECK(read.request() == *id);
  CHECK(read.key().task() == 3);
  CHECK(read.key().attempt() == 2);
  CHECK(read.stream() == v1::STDERR);
  CHECK(read.tail_lines() == 10);
  CHECK(read.follow());
  Chunk(*id, "a");
  Chunk(*id, "b");
  Chunk(*id, "c", true);
  CHECK(reader->text == "abc");
  CHECK(reader->ends == 1);
  CHECK(reader->status.ok());
  Chunk(*id, "late");
  CHECK(reader->text == "abc");
  CHECK(world.relay->open() == 0);
}

TEST_CASE_METHOD(Fixture, "logs: a position reaches the agent and positions the reader") {
  request.tail_lines = 0;
  request.from.set_stderr_bytes(70);
  absl::StatusOr<LogRelay::RequestId> id = world.relay->Open(request, reader);
  REQUIRE(id.ok());
  CHECK(agent.link->Of(Message::kReadLog)[0].read_log().from().stderr_bytes() == 70);
  const auto chunk = [&](int64_t next, const std::string& data) {
    v1::AgentMessage message;
    message.set_epoch(agent.epoch);
    message.mutable_log()->set_request(*id);
    message.mutable_log()->set_data(data);
    message.mutable_log()->mutable_next()->set_stderr_bytes(next);
    agent.Send(message);
  };
  chunk(70, "");
  chunk(73, "abc");
  Chunk(*id, "", true);
  CHECK(reader->text == "abc");
  CHECK(reader->positions == std::vector<int64_t>{70, 73});
  CHECK(reader->ends == 1);
}

TEST_CASE_METHOD(Fixture, "logs: an agent's error ends the request") {
  absl::StatusOr<LogRelay::RequestId> id = world.relay->Open(request, reader);
  Chunk(*id, "", false, "no log of that attempt");
  CHECK(reader->ends == 1);
  CHECK(absl::IsNotFound(reader->status));
}

TEST_CASE_METHOD(Fixture, "logs: a cancellation reaches the agent, and the reader gets no calls") {
  absl::StatusOr<LogRelay::RequestId> id = world.relay->Open(request, reader);
  world.relay->Cancel(*id);
  world.relay->Cancel(*id);
  CHECK(agent.link->Of(Message::kCancelLog).size() == 1);
  Chunk(*id, "late", true);
  CHECK(reader->text.empty());
  CHECK(reader->ends == 0);
}

TEST_CASE_METHOD(Fixture, "logs: the end of the session ends its log requests") {
  REQUIRE(world.relay->Open(request, reader).ok());
  agent.Disconnect();
  CHECK(reader->ends == 1);
  CHECK(absl::IsUnavailable(reader->status));
  CHECK(absl::IsUnavailable(world.relay->Open(request, reader).status()));
  CHECK(reader->ends == 1);
}

TEST_CASE_METHOD(Fixture, "logs: another session cannot answer a request") {
  absl::StatusOr<LogRelay::RequestId> id = world.relay->Open(request, reader);
  Agent other(&world, "n2");
  other.Connect();
  std::swap(agent.session, other.session);
  std::swap(agent.epoch, other.epoch);
  Chunk(*id, "forged", true);
  CHECK(reader->text.empty());
  CHECK(reader->ends == 0);
}

TEST_CASE_METHOD(Fixture, "logs: a reader that is too slow is disconnected") {
  absl::StatusOr<LogRelay::RequestId> id = world.relay->Open(request, reader);
  const std::string chunk(size_t{1} << 20, 'x');
  for (int i = 0; i < 64; ++i) {  // a reader that keeps up is not disconnected
    Chunk(*id, chunk);
    world.relay->Consumed(*id, chunk.size());
  }
  CHECK(reader->ends == 0);
  for (int i = 0; i < 17; ++i) Chunk(*id, chunk);
  CHECK(reader->ends == 1);
  CHECK(absl::IsResourceExhausted(reader->status));
  CHECK(RetryDelayOf(reader->status) > absl::ZeroDuration());
  CHECK(agent.link->Of(Message::kCancelLog).size() == 1);
}

TEST_CASE_METHOD(Fixture, "logs: the number of requests is bounded") {
  for (int i = 0; i < 16; ++i) REQUIRE(world.relay->Open(request, reader).ok());
  const absl::Status refused = world.relay->Open(request, reader).status();
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(RetryDelayOf(refused) > absl::ZeroDuration());
}

}  // namespace
}  // namespace berth
