// Who calls, if an agent calls for a task.
#include "server/access/task_caller.h"

#include <catch2/catch.hpp>

#include "server/access/call.h"
#include "support/task_call.h"

namespace berth {
namespace {

Caller NodeCaller(const std::string& node) {
  Caller caller;
  caller.principal = {Principal::Kind::kNode, node, {}};
  caller.proof = Proof::kIdentity;
  caller.by_identity = caller.tls = true;
  caller.serial = "1f";
  return caller;
}

Caller UserCaller(const std::string& user, Proof proof) {
  Caller caller;
  caller.principal = {Principal::Kind::kUser, user, {"ops"}};
  caller.proof = proof;
  caller.by_identity = proof == Proof::kIdentity;
  caller.administrator = true;
  return caller;
}

TaskCall CallWith(const TaskKeys& keys) {
  TaskCall call{.job_uid = 12, .task = 3, .attempt = 2, .node_id = 7, .epoch = 9, .node = "n1"};
  call.key = keys.Of(NodeId{7}, "n1", 9);
  return call;
}

TEST_CASE("task caller: a key is good for one registration of one node with one berthd") {
  const TaskKeys keys, others;
  const std::string key = keys.Of(NodeId{7}, "n1", 9);
  CHECK(key.size() == 64);
  CHECK(keys.Is(key, NodeId{7}, "n1", 9));
  CHECK_FALSE(keys.Is(key, NodeId{8}, "n1", 9));
  CHECK_FALSE(keys.Is(key, NodeId{7}, "n2", 9));
  CHECK_FALSE(keys.Is(key, NodeId{7}, "n1", 10));
  CHECK_FALSE(others.Is(key, NodeId{7}, "n1", 9));
  CHECK_FALSE(keys.Is("", NodeId{7}, "n1", 9));
  CHECK_FALSE(keys.Is(key.substr(1), NodeId{7}, "n1", 9));
}

TEST_CASE("task caller: the agent's node speaks for the task, without rights of anybody") {
  const TaskKeys keys;
  const Caller caller =
      TaskCallerFrom(NodeCaller("n1"), EncodeTaskCall(CallWith(keys)), true, keys);
  REQUIRE(caller.refused.ok());
  REQUIRE(caller.task.has_value());
  CHECK(caller.task->key == TaskKey{JobId{12}, 3});
  CHECK(caller.task->attempt == 2);
  CHECK(caller.task->node == NodeId{7});
  CHECK(caller.task->epoch == 9);
  CHECK(caller.principal == Principal{Principal::Kind::kNode, "n1", {}});
  CHECK(caller.serial == "1f");
  CHECK(caller.by_identity);
  CHECK(TextOf(caller) == "task 3 of job 12 on node \"n1\"");
}

TEST_CASE("task caller: a certificate without an identity needs the key of an agent") {
  const TaskKeys keys;
  for (const Proof proof : {Proof::kCommonName, Proof::kLocal}) {
    const Caller connection = UserCaller("bob", proof);
    const Caller caller = TaskCallerFrom(connection, EncodeTaskCall(CallWith(keys)), false, keys);
    REQUIRE(caller.task.has_value());
    CHECK_FALSE(caller.administrator);
    CHECK(caller.principal == Principal{Principal::Kind::kNode, "n1", {}});
    CHECK(caller.task->agent == connection.principal);
    TaskCall forged = CallWith(keys);
    forged.key = std::string(64, '0');
    CHECK(absl::IsUnavailable(
        TaskCallerFrom(connection, EncodeTaskCall(forged), false, keys).refused));
    CHECK(absl::IsPermissionDenied(
        TaskCallerFrom(connection, EncodeTaskCall(CallWith(keys)), true, keys).refused));
  }
}

TEST_CASE("task caller: users and other nodes get nothing, and lose what they have") {
  const TaskKeys keys;
  Caller of_users = UserCaller("bob", Proof::kCommonName);
  of_users.of_users = true;
  const std::string text = EncodeTaskCall(CallWith(keys));
  for (const Caller& connection :
       {UserCaller("ada", Proof::kIdentity), of_users, NodeCaller("n2")}) {
    for (const std::string& metadata : {text, std::string("nonsense"), std::string()}) {
      const Caller caller = TaskCallerFrom(connection, metadata, false, keys);
      CHECK_FALSE(caller.refused.ok());
      CHECK_FALSE(caller.task.has_value());
      CHECK_FALSE(caller.administrator);
      CHECK(caller.principal == Principal{Principal::Kind::kNode, "", {}});
    }
  }
}

TEST_CASE("task caller: there is no registration 0") {
  const TaskKeys keys;
  TaskCall call = CallWith(keys);
  call.epoch = 0;
  call.key = keys.Of(NodeId{7}, "n1", 0);
  CHECK(absl::IsInvalidArgument(
      TaskCallerFrom(NodeCaller("n1"), EncodeTaskCall(call), true, keys).refused));
}

TEST_CASE("task caller: rechecks of a stream leave out the agent's registration") {
  Caller caller;
  caller.task = CallingTask{.key = {JobId{1}, 0}, .attempt = 1, .node = NodeId{1}, .epoch = 4};
  const Call call{Rpc::kJobServiceExec, std::make_shared<const Caller>(caller), "address"};
  const Call lasting = WhileItLasts(call);
  CHECK(lasting.rpc == call.rpc);
  CHECK(lasting.caller->task->epoch == 0);
  CHECK(lasting.caller->task->attempt == 1);
  CHECK(call.caller->task->epoch == 4);
}

}  // namespace
}  // namespace berth
