// Questions about jobs on the command line: explain, plan, estimate, and dry runs.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

constexpr int64_t kNow = 1'795'003'600;  // 2026-11-18 12:06:40, the time of FakeWorld

void AddConstraint(const std::string& name, int64_t nodes, int64_t devices, int64_t in_order,
                   v1::GroupConstraints* group) {
  v1::ConstraintCount& count = *group->add_constraints();
  count.set_name(name);
  count.set_nodes_alone(nodes);
  count.set_devices_alone(devices);
  count.set_nodes_in_order(in_order);
}

void FillGroup(v1::GroupConstraints* group) {
  group->set_group("worker");
  group->set_needed_tasks(8);
  group->set_nodes(10);
  group->set_devices(36);
  AddConstraint("ready", 1, 8, 1, group);
  AddConstraint("schedulable", 0, 0, 0, group);
  AddConstraint("node_selector", 4, 12, 3, group);
  AddConstraint("free", 6, 4, 3, group);
  group->set_nodes_left(3);
  group->set_tasks_left(3);
  group->set_largest_block(4);
  group->set_image_nodes(3);
  group->add_blocking("node_selector");
  group->add_blocking("free");
}

void AddRemedy(v1::Remedy::Kind kind, const std::string& field, const std::string& value,
               const std::string& detail, bool now, v1::ExplainJobResponse* answer) {
  v1::Remedy& remedy = *answer->add_remedies();
  remedy.set_kind(kind);
  remedy.set_field(field);
  remedy.set_value(value);
  remedy.set_detail(detail);
  remedy.set_starts_now(now);
}

v1::ExplainJobResponse Waiting() {
  v1::ExplainJobResponse answer;
  answer.set_job("bert");
  answer.set_state(v1::JOB_PENDING);
  v1::WaitReason& reason = *answer.add_reasons();
  reason.set_code(v1::WaitReason::INSUFFICIENT_RESOURCES);
  reason.set_resource("gpu");
  reason.set_needed(64);
  reason.set_free(32);
  answer.set_position(2);
  answer.set_queue_jobs(5);
  FillGroup(answer.add_groups());
  v1::Holder& llama = *answer.add_holders();
  llama.set_job("llama");
  llama.set_queue("vision");
  llama.set_amount(32);
  llama.mutable_ends()->set_seconds(kNow + 1500);
  v1::Holder& other = *answer.add_holders();
  other.set_job("t5");
  other.set_queue("research");
  other.set_amount(4);
  v1::EstimateJobResponse& estimate = *answer.mutable_estimate();
  estimate.mutable_likely()->set_seconds(kNow + 1500);
  estimate.mutable_earliest()->set_seconds(kNow + 600);
  estimate.mutable_latest()->set_seconds(kNow + 3600);
  estimate.set_jobs_before(1);
  estimate.set_history_jobs(120);
  answer.mutable_reservation()->mutable_start()->set_seconds(kNow + 1500);
  answer.mutable_reservation()->add_nodes("n1");
  answer.mutable_reservation()->add_nodes("n2");
  AddRemedy(v1::Remedy::FEWER_TASKS, "groups[0].replicas", "3",
            "3 of 8 tasks would start now (replicas and minAvailable 3)", true, &answer);
  AddRemedy(v1::Remedy::OTHER_QUEUE, "queue", "vision", "queue vision could accept it", false,
            &answer);
  AddRemedy(v1::Remedy::WAIT, "", "2026-11-18T12:31:40Z", "nothing to change", false, &answer);
  answer.mutable_remedies(2)->mutable_wait_until()->set_seconds(kNow + 1500);
  return answer;
}

TEST_CASE("explain gives the reasons in numbers, and what would start the job") {
  Cli cli;
  cli.script.Answer("ExplainJob", Waiting());
  CHECK(cli.Run({"job", "explain", "bert"}) == 0);
  CHECK(cli.out() == R"(bert is Pending, 2nd of 5 pending jobs in its queue.
Reasons: needs 64 gpu, 32 free.
Group worker (8 pending tasks, room now for 3):
  10 nodes with 36 free devices, rejected by:
  CONSTRAINT     NODES  DEVICES  IN ORDER
  ready              1        8         1
  node_selector      4       12         3
  free               6        4         3
  left               -        -         3
  blocked by node_selector and free together; the most free devices on one node: 4; 3 nodes hold its image
gpu is held by:
  JOB    QUEUE     AMOUNT  ENDS
  llama  vision        32  2026-11-18 12:31:40 (in 25m)
  t5     research       4  -
Starts:
  about 2026-11-18 12:31:40 (in 25m), between 2026-11-18 12:16:40 and 2026-11-18 13:06:40, based on 120 ended jobs; 1 job starts first
Reserved:
  from 2026-11-18 12:31:40 on n1, n2
To start it:
  groups[0].replicas: 3           3 of 8 tasks would start now (replicas and minAvailable 3)
  queue: vision                   queue vision could accept it; not immediately
  wait until 2026-11-18 12:31:40  nothing to change
)");
  CHECK(cli.script.Requests<v1::ExplainJobRequest>("ExplainJob")[0].job() == "bert");
  CHECK(cli.Run({"job", "explain", "bert", "-o", "wide"}) == 0);
  CHECK(cli.out().find("\n  schedulable        0        0         0") != std::string::npos);
  CHECK(cli.out().find("DEVICES IN ORDER") != std::string::npos);
}

TEST_CASE("explain writes changes as manifests do") {
  v1::ExplainJobResponse answer = Waiting();
  answer.clear_remedies();
  AddRemedy(v1::Remedy::SMALLER_TASKS, "groups[0].resources.cpu_millis", "7500", "a", true,
            &answer);
  AddRemedy(v1::Remedy::SMALLER_TASKS, "groups[1].resources.memory_bytes", "17179869184", "b", true,
            &answer);
  AddRemedy(v1::Remedy::FEWER_TASKS, "groups[0].min_available", "4", "c", true, &answer);
  AddRemedy(v1::Remedy::WIDER_TIER, "groups[0].partition.topology.highest_tier", "2", "d", true,
            &answer);
  AddRemedy(v1::Remedy::SOFT_TOPOLOGY, "topology.mode", "SOFT", "e", true, &answer);
  AddRemedy(v1::Remedy::ANY_LINKS, "groups[0].resources.devices[1].min_link", "", "f", true,
            &answer);
  Cli cli;
  cli.script.Answer("ExplainJob", answer);
  CHECK(cli.Run({"job", "explain", "bert"}) == 0);
  CHECK(cli.out().find(R"(To start it:
  groups[0].resources.cpu: 7.5                 a
  groups[1].resources.memory: 16Gi             b
  groups[0].minAvailable: 4                    c
  groups[0].partition.topology.highestTier: 2  d
  topology.mode: Soft                          e
  omit groups[0].resources.devices[1].minLink  f
)") != std::string::npos);
}

TEST_CASE("every view shows why an action made no room") {
  const std::string held = "queue vision holds 32 gpu in jobs that are not preemptible";
  v1::ExplainJobResponse explained = Waiting();
  v1::RoomAsked& asked = *explained.mutable_reasons(0)->add_asked();
  asked.set_action("reclaim");
  asked.set_barred(held);
  v1::Job job = MakeJob("bert", v1::JOB_PENDING);
  *job.mutable_status()->add_reasons() = explained.reasons(0);
  v1::ListJobsResponse listed;
  *listed.add_jobs() = job;
  v1::ListQueueSharesResponse shares;
  shares.add_shares()->set_queue("research");
  shares.mutable_shares(0)->add_why("reclaim made no room for job bert: " + held);
  Cli cli;
  cli.script.Answer("ListJobs", listed);
  cli.script.Answer("GetJob", job);
  cli.script.Answer("ListTasks", v1::ListTasksResponse());
  cli.script.Answer("ExplainJob", explained);
  cli.script.Answer("ListQueueShares", shares);
  const std::string expected = "needs 64 gpu, 32 free; reclaim: " + held;
  for (const std::vector<std::string>& command : {std::vector<std::string>{"job", "list"},
                                                  {"job", "describe", "bert"},
                                                  {"job", "explain", "bert"}}) {
    CHECK(cli.Run(command) == 0);
    INFO(cli.out());
    CHECK(cli.out().find(expected) != std::string::npos);
  }
  CHECK(cli.Run({"queue", "shares"}) == 0);
  CHECK(cli.out().find("reclaim made no room for job bert: " + held) != std::string::npos);
}

TEST_CASE("explain of a job that is not pending, or that no change would start") {
  Cli cli;
  v1::ExplainJobResponse running;
  running.set_job("llama");
  running.set_state(v1::JOB_RUNNING);
  cli.script.Answer("ExplainJob", running);
  CHECK(cli.Run({"job", "explain", "llama"}) == 0);
  CHECK(cli.out() == "llama is Running: it waits for nothing.\n");
  Cli no_remedy;
  v1::ExplainJobResponse answer = Waiting();
  answer.clear_remedies();
  answer.clear_holders();
  answer.clear_reservation();
  answer.set_position(11);
  answer.set_queue_jobs(11);
  answer.mutable_estimate()->Clear();
  answer.mutable_estimate()->set_unknown("no running job has a walltime");
  no_remedy.script.Answer("ExplainJob", answer);
  CHECK(no_remedy.Run({"job", "explain", "bert"}) == 0);
  for (const char* words : {"11th of 11 pending jobs",
                            "To start it:\n  no single change is known that would start it\n",
                            "Starts:\n  unknown: no running job has a walltime\n"}) {
    INFO(no_remedy.out());
    CHECK(no_remedy.out().find(words) != std::string::npos);
  }
  CHECK(no_remedy.out().find("held by") == std::string::npos);
}

TEST_CASE("several jobs are explained one after the other, as documents for programs") {
  Cli cli;
  cli.script.Answer("ExplainJob", Waiting());
  cli.script.Answer("ExplainJob", absl::NotFoundError("there is no job \"b\""));
  cli.script.Answer("ExplainJob", Waiting());
  CHECK(cli.Run({"job", "explain", "a", "b", "c", "-o", "yaml"}) == 3);
  CHECK(cli.out().find("\n---\njob: bert\nstate: Pending\n") != std::string::npos);
  CHECK(cli.err() == "berth: there is no job \"b\"\n");
  CHECK(cli.Run({"job", "explain", "a", "-o", "json"}) == 0);
  CHECK(cli.out().find("\"nodesInOrder\": 3,") != std::string::npos);
  CHECK(cli.Run({"job", "explain"}) == 2);
}

TEST_CASE("estimate prints one sentence") {
  Cli cli;
  v1::EstimateJobResponse estimate;
  cli.script.Answer("EstimateJob", estimate);
  estimate.mutable_latest()->set_seconds(kNow + 1500);
  estimate.set_jobs_before(2);
  cli.script.Answer("EstimateJob", estimate);
  estimate.Clear();
  estimate.set_unknown("job t5 goes before it, and has no walltime");
  cli.script.Answer("EstimateJob", estimate);
  CHECK(cli.Run({"job", "estimate", "a", "b", "c"}) == 0);
  CHECK(cli.out() ==
        "a is not pending\n\n"
        "b starts: 2026-11-18 12:31:40 (in 25m) at the latest, if all keep to their walltimes; "
        "2 jobs start first\n\n"
        "c starts: unknown: job t5 goes before it, and has no walltime\n");
}

constexpr char kJob[] = R"(apiVersion: berth/v1
kind: Job
name: one
queue: q
groups: [{name: w, replicas: 4, command: [a]}]
)";

void AddTask(const std::string& group, int32_t index, const std::string& node, int devices,
             google::protobuf::RepeatedPtrField<v1::PlannedTask>* tasks) {
  v1::PlannedTask& task = *tasks->Add();
  task.set_group(group);
  task.set_index(index);
  task.set_node(node);
  for (int i = 0; i < devices; ++i) task.add_device_uuids("GPU-" + std::to_string(i));
}

TEST_CASE("a dry run of one job shows where it would be placed") {
  Cli cli;
  const TempFile file(kJob);
  v1::PlanJobResponse plan;
  plan.set_starts_now(true);
  AddTask("driver", 0, "n1", 0, plan.mutable_placements());
  AddTask("worker", 0, "n1", 2, plan.mutable_placements());
  AddTask("worker", 1, "n1", 2, plan.mutable_placements());
  AddTask("worker", 2, "n2", 2, plan.mutable_placements());
  cli.script.Answer("PlanJob", plan);
  CHECK(cli.Run({"submit", "--dry-run", file.path()}) == 0);
  CHECK(cli.out() == R"(job/one would be accepted (dry run)
Starts now on 2 nodes:
  NODE  TASKS                  DEVICES
  n1    driver-0, worker-0..1        4
  n2    worker-2                     2
)");
  const v1::Job sent = cli.script.Requests<v1::PlanJobRequest>("PlanJob")[0].job();
  CHECK(sent.name() == "one");
  CHECK(sent.spec().groups(0).replicas() == 4);
  CHECK(cli.script.Requests<v1::SubmitJobsRequest>("SubmitJobs").empty());

  CHECK(cli.Run({"job", "plan", "-f", file.path(), "-o", "wide"}) == 0);
  CHECK(cli.out().find("GPU-0,GPU-1,GPU-0,GPU-1") != std::string::npos);
  CHECK(cli.Run({"job", "plan", "-f", file.path(), "-o", "json"}) == 0);
  CHECK(cli.out().find("\"startsNow\": true") != std::string::npos);
  CHECK(cli.Run({"submit", "--dry-run", "-o", "name", "--name", "quick", "--", "x"}) == 0);
  CHECK(cli.out() == "job/quick\n");
}

TEST_CASE("a plan of a job that would stay pending succeeds") {
  Cli cli;
  const TempFile file(kJob);
  v1::PlanJobResponse waits;
  v1::WaitReason& reason = *waits.add_blockers();
  reason.set_code(v1::WaitReason::INSUFFICIENT_RESOURCES);
  reason.set_resource("gpu");
  reason.set_needed(64);
  reason.set_free(32);
  waits.mutable_reservation()->mutable_start()->set_seconds(kNow + 1500);
  waits.mutable_reservation()->add_nodes("n1");
  cli.script.Answer("PlanJob", waits);
  v1::PlanJobResponse evicts;
  AddTask("worker", 0, "n1", 2, evicts.mutable_nominated());
  v1::PlannedEviction& eviction = *evicts.add_evictions();
  eviction.set_job("bert");
  eviction.set_queue("vision");
  eviction.set_tasks(4);
  eviction.set_reason(v1::Eviction::RECLAIMED);
  eviction.set_detail("it borrowed 8 gpu");
  cli.script.Answer("PlanJob", evicts);
  v1::PlanJobResponse exhausted;
  exhausted.set_exhausted(true);
  cli.script.Answer("PlanJob", exhausted);
  CHECK(cli.Run({"job", "plan", "-f", file.path()}) == 0);
  CHECK(cli.out() == R"(job/one would be accepted (dry run)
Pending because:
  needs 64 gpu, 32 free
Reserved:
  from 2026-11-18 12:31:40 on n1
)");
  CHECK(cli.Run({"job", "plan", "-f", file.path()}) == 0);
  CHECK(cli.out() == R"(job/one would be accepted (dry run)
Waits for resources being released on 1 node:
  NODE  TASKS     DEVICES
  n1    worker-0        2
Evicts:
  JOB   QUEUE   TASKS  REASON     WHY
  bert  vision      4  Reclaimed  it borrowed 8 gpu
)");
  CHECK(cli.Run({"job", "plan", "-f", file.path()}) == 0);
  CHECK(cli.out().find("is unknown") != std::string::npos);
}

TEST_CASE("a plan over many nodes shows the first ones, or all on request") {
  Cli cli;
  const TempFile file(kJob);
  v1::PlanJobResponse plan;
  for (int i = 0; i < 23; ++i) {
    AddTask("w", i, "node" + std::to_string(i), 1, plan.mutable_placements());
  }
  cli.script.Answer("PlanJob", plan);
  CHECK(cli.Run({"job", "plan", "-f", file.path()}) == 0);
  CHECK(cli.out().find("node19") != std::string::npos);
  CHECK(cli.out().find("node20") == std::string::npos);
  CHECK(cli.out().find("\n  ... and 3 more nodes: -o wide shows all\n") != std::string::npos);
  CHECK(cli.Run({"job", "plan", "-f", file.path(), "-o", "wide"}) == 0);
  CHECK(cli.out().find("node22") != std::string::npos);
}

TEST_CASE("errors in a planned job are reported with file and line") {
  Cli cli;
  const TempFile file(kJob);
  cli.script.Answer("PlanJob", ViolationsError(absl::StatusCode::kInvalidArgument,
                                               {{"job.spec.groups[0].replicas", "too many"},
                                                {"job.spec.queue", "no such queue"}}));
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"job", "plan", "-f", file.path()},
        std::vector<std::string>{"submit", "--dry-run", file.path()}}) {
    CHECK(cli.Run(arguments) == 4);
    CHECK(cli.err() == file.path() + ":5:30: groups[0].replicas: too many\n" + file.path() +
                           ":4:8: queue: no such queue\n");
  }
  const TempFile queue("apiVersion: berth/v1\nkind: Queue\nname: q\n");
  CHECK(cli.Run({"job", "plan", "-f", queue.path()}) == 4);
  CHECK(cli.err() == queue.path() + ":1:1: only jobs can be planned\n");
  CHECK(cli.Run({"job", "plan"}) == 2);
}

}  // namespace
}  // namespace berth
