// Demand of jobs, and the classes of jobs with equal demand.
#include <catch2/catch.hpp>

#include "core/model/pending_index.h"
#include "tests/unit/core/model_world.h"

namespace berth {
namespace {

std::string Text(const JobNeeds& needs) {
  std::string text = needs.gang ? "gang" : "any";
  for (const GroupNeed& need : needs.groups) {
    text += " " + std::to_string(need.group) + ":" + std::to_string(need.count);
  }
  return needs.empty() ? "nothing" : text;
}

// Two groups, a (4, at least 2) and b (3, at least 1); job minimum 4.
struct Fixture : World {
  QueueId q = AddQueue("q");
  NodeId n = AddNode("n", 0);
  JobSpec spec = JobOf("j", q, {GroupOfGpus("a", 4, 0), GroupOfGpus("b", 3, 0)});
  Fixture() {
    spec.groups[0].min_available = 2;
    spec.groups[1].min_available = 1;
    spec.min_available = 4;
  }
  void Place(JobId id, std::initializer_list<uint32_t> tasks) {
    std::vector<Placement> placements;
    for (uint32_t t : tasks) placements.push_back({t, n, {}});
    REQUIRE(Bind(id, placements).ok());
  }
  std::string Needs(JobId id) const { return Text(NeedsOf(job(id))); }
};

TEST_CASE_METHOD(Fixture, "a gang requests its minimums at once, then one task at a time",
                 "[model]") {
  const JobId id = Submit(spec);
  CHECK(Needs(id) == "gang 0:3 1:1");
  Place(id, {0, 1, 2, 4});
  REQUIRE(SetState(id, JobState::kBinding).ok());
  CHECK(Needs(id) == "any 0:1 1:1");
  Place(id, {3});
  CHECK(Needs(id) == "any 1:1");
  Place(id, {5, 6});
  CHECK(Needs(id) == "nothing");
}

std::vector<std::string> Texts(const std::vector<JobNeeds>& all) {
  std::vector<std::string> texts;
  for (const JobNeeds& needs : all) texts.push_back(Text(needs));
  return texts;
}

TEST_CASE_METHOD(Fixture, "the free part of the minimum is divided in all ways, first groups first",
                 "[model]") {
  using Ways = std::vector<std::string>;
  const JobId id = Submit(spec);
  CHECK(Texts(DivisionsOf(job(id))) == Ways{"gang 0:3 1:1", "gang 0:2 1:2"});
  spec.name = "k";
  spec.groups[0].min_available = spec.groups[1].min_available = 0;
  spec.min_available = 3;
  const JobId any = Submit(spec);
  CHECK(Texts(DivisionsOf(job(any))) ==
        Ways{"gang 0:3", "gang 0:2 1:1", "gang 0:1 1:2", "gang 1:3"});
  CHECK(Texts(FirstDivisionsOf(spec)) == Texts(DivisionsOf(job(any))));
  Place(any, {5});
  CHECK(Texts(DivisionsOf(job(any))) == Ways{"gang 0:2", "gang 0:1 1:1", "gang 1:2"});
}

TEST_CASE_METHOD(Fixture, "of many divisions some are tried, including both ends", "[model]") {
  JobSpec large = JobOf("l", q, {GroupOfGpus("a", 500, 0), GroupOfGpus("b", 500, 0)});
  for (GroupSpec& group : large.groups) group.min_available = 0;
  large.min_available = 400;
  const JobId id = Submit(large);
  const std::vector<JobNeeds> all = DivisionsOf(job(id));
  CHECK(all.size() > kMostDivisions / 2);
  CHECK(all.size() <= kMostDivisions);
  CHECK(Text(all.front()) == "gang 0:400");
  CHECK(Text(all.back()) == "gang 1:400");
  for (const JobNeeds& needs : all) {
    int32_t tasks = 0;
    for (const GroupNeed& need : needs.groups) tasks += need.count;
    CHECK(tasks == 400);
  }
  const std::vector<JobNeeds> few = FewDivisionsOf(job(id));
  REQUIRE(few.size() == kFewDivisions);
  CHECK(Text(few.front()) == "gang 0:400");
  CHECK(Text(few.back()) == "gang 1:400");
}

TEST_CASE_METHOD(Fixture, "with many small groups, each is tried first once", "[model]") {
  std::vector<GroupSpec> groups;
  for (int g = 0; g < 64; ++g) {
    groups.push_back(GroupOfGpus("g" + std::to_string(g), 1, 0));
    groups.back().min_available = 0;
  }
  JobSpec many = JobOf("m", q, groups);
  many.min_available = 32;
  const JobId id = Submit(many);
  const std::vector<JobNeeds> all = DivisionsOf(job(id));
  REQUIRE(all.size() == kMostDivisions);
  CHECK(Text(all.front()) == Needs(id));
  for (const JobNeeds& needs : all) CHECK(needs.groups.size() == 32);
}

TEST_CASE_METHOD(Fixture, "a gang of any tasks waits for tasks that are still being stopped",
                 "[model]") {
  for (GroupSpec& group : spec.groups) group.min_available = 0;
  const JobId id = Submit(spec);  // any 4 of 7
  Place(id, {0, 1, 2, 4, 5, 6});
  REQUIRE(SetState(id, JobState::kRunning).ok());
  REQUIRE(Try(TasksReleased{.job = id, .tasks = {0, 1, 2, 4, 5, 6}, .requeue = true}).ok());
  REQUIRE(SetState(id, JobState::kPending).ok());
  CHECK(Needs(id) == "nothing");  // only one task is pending so far
  for (uint32_t t : {0u, 1u}) REQUIRE(Report(id, t, ReportState::kExited, 143).ok());
  CHECK(Needs(id) == "nothing");
  REQUIRE(Report(id, 2, ReportState::kExited, 143).ok());
  CHECK(Needs(id) == "gang 0:4");
}

TEST_CASE_METHOD(Fixture, "a running gang requests a lost member again", "[model]") {
  const JobId id = Submit(spec);
  Place(id, {0, 1, 2, 4});
  REQUIRE(SetState(id, JobState::kRunning).ok());
  REQUIRE(Report(id, 4, ReportState::kRunning).ok());
  REQUIRE(Report(id, 4, ReportState::kExited, 1).ok());
  CHECK(Needs(id) == "gang 1:1");
  REQUIRE(Try(TasksRequeued{id, {4}}).ok());
  CHECK(Needs(id) == "gang 1:1");
}

TEST_CASE_METHOD(Fixture, "succeeded members count towards the minimum", "[model]") {
  const JobId id = Submit(spec);
  Place(id, {0, 1, 2, 4});
  REQUIRE(SetState(id, JobState::kRunning).ok());
  for (uint32_t t : {0u, 1u, 2u}) {
    REQUIRE(Report(id, t, ReportState::kRunning).ok());
    REQUIRE(Report(id, t, ReportState::kExited, 0).ok());
  }
  CHECK(Needs(id) == "any 0:1 1:1");
}

TEST_CASE_METHOD(Fixture, "a pending gang waits for members that are still being stopped",
                 "[model]") {
  const JobId id = Submit(JobOf("g", q, {GroupOfGpus("w", 2, 0)}));
  Place(id, {0, 1});
  REQUIRE(Try(TasksReleased{id, {0, 1}, true, ReleaseReason::kRestart}).ok());
  REQUIRE(Report(id, 0, ReportState::kExited, 143).ok());
  CHECK(Needs(id) == "nothing");
  REQUIRE(Report(id, 1, ReportState::kExited, 143).ok());
  CHECK(Needs(id) == "gang 0:2");
}

TEST_CASE_METHOD(Fixture, "only jobs that may be placed have demand", "[model]") {
  const JobId id = Submit(spec);
  for (JobState s : {JobState::kHeld, JobState::kRestarting, JobState::kSuspended}) {
    REQUIRE(SetState(id, s).ok());
    CHECK(Needs(id) == "nothing");
    CHECK(job(id).pending_class == ClassId{});
  }
  REQUIRE(SetState(id, JobState::kPending).ok());
  CHECK(Needs(id) != "nothing");
  REQUIRE(Try(JobSuspended{id, true}).ok());
  CHECK(Needs(id) == "nothing");
  REQUIRE(Try(JobSuspended{id, false}).ok());
  CHECK(Needs(id) != "nothing");
  REQUIRE(Try(JobCancelled{id, "no"}).ok());
  CHECK(Needs(id) == "nothing");
}

TEST_CASE_METHOD(Fixture, "a group opens when the groups it depends on run or have completed",
                 "[model]") {
  spec.groups[1].depends_on = {{0, GroupCondition::kRunning}};
  spec.min_available = 3;
  const JobId id = Submit(spec);
  CHECK(Needs(id) == "gang 0:2");
  Place(id, {0, 1});
  REQUIRE(SetState(id, JobState::kRunning).ok());
  CHECK(Needs(id) == "any 0:1");  // b's minimum is missing, but b is closed: a may grow
  CHECK_FALSE(GroupOpen(job(id), 1));
  CHECK(Bind(id, {{4, n, {}}}).message() == "task b-0 of job j (1): its group waits for another");
  REQUIRE(Report(id, 0, ReportState::kRunning).ok());
  REQUIRE(Report(id, 1, ReportState::kRunning).ok());
  CHECK(GroupOpen(job(id), 1));
  CHECK(Needs(id) == "gang 1:1");

  spec.name = "k";
  spec.groups[1].depends_on = {{0, GroupCondition::kCompleted}};
  const JobId other = Submit(spec);
  Place(other, {0, 1, 2, 3});
  for (uint32_t t = 0; t < 4; ++t) {
    CHECK_FALSE(GroupOpen(job(other), 1));
    REQUIRE(Report(other, t, ReportState::kRunning).ok());
    REQUIRE(Report(other, t, ReportState::kExited).ok());
  }
  CHECK(GroupOpen(job(other), 1));
}

TEST_CASE_METHOD(Fixture, "equal jobs form one class, by priority and then age", "[model]") {
  const JobSpec one = JobOf("", q, {GroupOfGpus("w", 1, 1)});
  const auto submit = [&](const std::string& name, int32_t priority) {
    JobSpec spec_of = one;
    spec_of.name = name;
    spec_of.priority = priority;
    return Submit(spec_of);
  };
  const JobId low = submit("low", 0);
  const JobId high = submit("high", 5);
  const JobId low2 = submit("low2", 0);
  const JobId big = Submit(JobOf("big", q, {GroupOfGpus("w", 1, 8)}));
  CHECK(job(low).pending_class == job(high).pending_class);
  CHECK(job(big).pending_class != job(high).pending_class);

  const PendingIndex& pending = state.pending();
  CHECK(pending.ready_count() == 2);
  CHECK(pending.ready().begin()->second.begin()->first.job == high);
  const PendingClass& c = pending.Class(job(low).pending_class);
  std::vector<JobId> order;
  for (const OrderKey& key : c.jobs) order.push_back(key.job);
  CHECK(order == std::vector<JobId>{high, low, low2});

  REQUIRE(Try(JobUpdated{low2, 9, {}}).ok());
  CHECK(c.jobs.begin()->job == low2);
  CHECK(pending.ready().begin()->second.begin()->first.job == low2);
  CHECK(CheckConsistency(state).ok());
}

TEST_CASE_METHOD(Fixture, "a blocked class is skipped until something could help", "[model]") {
  const JobSpec one = JobOf("first", q, {GroupOfGpus("w", 1, 0)});
  const JobId runs = Submit(one);
  Place(runs, {0});
  JobSpec two = JobOf("second", q, {GroupOfGpus("w", 1, 4)});
  const JobId blocked = Submit(two);
  const ClassId c = job(blocked).pending_class;
  const auto block = [&] {
    BlockedVerdict verdict;
    verdict.needed = 4;
    verdict.wake = WakeOn::kRoom;
    StateEditor(state, EditMode::kTentative).Block(c, verdict);
    CHECK(state.pending().ready().empty());
  };
  block();
  two.name = "third";  // an equal job does not unblock it
  Submit(two);
  CHECK(state.pending().ready().empty());
  CHECK(state.pending().Class(c).blocked->needed == 4);
  SECTION("a task ends") { REQUIRE(Report(runs, 0, ReportState::kExited).ok()); }
  SECTION("a node joins") { AddNode("m", 8); }
  SECTION("a node is uncordoned") { REQUIRE(Try(NodeSteered{n, false, false, ""}).ok()); }
  SECTION("a queue changes") { REQUIRE(Try(QueueOpened{q, true}).ok()); }
  SECTION("a back-off ends") {
    REQUIRE(Try(NodeRefused{n, 1, now + absl::Seconds(5), {}, ""}).ok());
    block();
    StateEditor(state).PassTime(now + absl::Seconds(4));
    CHECK(state.pending().ready().empty());
    CHECK_FALSE(state.free().Has(n));
    StateEditor(state).PassTime(now + absl::Seconds(5));
    CHECK(state.free().Has(n));
  }
  StateEditor(state, EditMode::kTentative).WakeForRoom([](ShapeId, NodeId) { return true; });
  CHECK(state.pending().ready_count() == 1);
  CHECK(state.pending().Class(c).blocked == nullptr);
  CHECK(CheckConsistency(state).ok());
}

}  // namespace
}  // namespace berth
