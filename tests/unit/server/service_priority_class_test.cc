// PriorityClassService over gRPC, and what classes do to jobs that are submitted.
#include <catch2/catch.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/unit/server/service_world.h"
#include "tests/unit/server/validation_samples.h"

namespace berth::testing {
namespace {

using Classes = v1::PriorityClassService::Stub;

v1::CreatePriorityClassRequest NewClass(const std::string& name, int32_t value) {
  v1::CreatePriorityClassRequest request;
  request.mutable_priority_class()->set_name(name);
  request.mutable_priority_class()->set_value(value);
  return request;
}

absl::Status Create(ServiceWorld& world, const v1::CreatePriorityClassRequest& request,
                    v1::PriorityClass* made = nullptr) {
  v1::PriorityClass unused;
  return Call(*world.priority_classes, &Classes::CreatePriorityClass, request,
              made != nullptr ? made : &unused);
}

void MustCreate(ServiceWorld& world, const v1::CreatePriorityClassRequest& request) {
  const absl::Status status = Create(world, request);
  INFO(status);
  REQUIRE(status.ok());
}

absl::Status Update(ServiceWorld& world, const v1::PriorityClass& one,
                    const std::vector<std::string>& paths, v1::PriorityClass* changed = nullptr) {
  v1::UpdatePriorityClassRequest request;
  *request.mutable_priority_class() = one;
  for (const std::string& path : paths) request.mutable_update_mask()->add_paths(path);
  v1::PriorityClass unused;
  return Call(*world.priority_classes, &Classes::UpdatePriorityClass, request,
              changed != nullptr ? changed : &unused);
}

absl::Status Delete(ServiceWorld& world, const std::string& name, const std::string& etag = "") {
  v1::DeletePriorityClassRequest request;
  request.set_name(name);
  request.set_etag(etag);
  v1::DeletePriorityClassResponse response;
  return Call(*world.priority_classes, &Classes::DeletePriorityClass, request, &response);
}

absl::StatusOr<v1::PriorityClass> Get(ServiceWorld& world, const std::string& name) {
  v1::GetPriorityClassRequest request;
  request.set_name(name);
  v1::PriorityClass found;
  absl::Status status = Call(*world.priority_classes, &Classes::GetPriorityClass, request, &found);
  if (!status.ok()) return status;
  return found;
}

v1::ListPriorityClassesResponse List(ServiceWorld& world, int size = 0,
                                     const std::string& token = "") {
  v1::ListPriorityClassesRequest request;
  request.set_page_size(size);
  request.set_page_token(token);
  v1::ListPriorityClassesResponse response;
  REQUIRE(Call(*world.priority_classes, &Classes::ListPriorityClasses, request, &response).ok());
  return response;
}

v1::SubmitJobsRequest JobOfClass(const std::string& name, const std::string& of_class) {
  v1::SubmitJobsRequest request;
  *request.add_jobs() = SmallJob(name, "q");
  request.mutable_jobs(0)->mutable_spec()->set_priority_class(of_class);
  return request;
}

absl::Status Submit(ServiceWorld& world, const v1::SubmitJobsRequest& request) {
  v1::SubmitJobsResponse response;
  return world.Submit(request, &response);
}

TEST_CASE("priority classes: create, get, list, update, delete, and restart") {
  ServiceWorld world;
  v1::CreatePriorityClassRequest create = NewClass("system-critical", 1000);
  create.mutable_priority_class()->set_preemption_policy(v1::NEVER);
  create.mutable_priority_class()->set_description("for what must run");
  create.set_request_id("once");
  v1::PriorityClass made, again;
  REQUIRE(Create(world, create, &made).ok());
  REQUIRE(Create(world, create, &again).ok());
  CHECK(made.SerializeAsString() == again.SerializeAsString());
  create.clear_request_id();
  const absl::Status twice = Create(world, create);
  CHECK(absl::IsAlreadyExists(twice));
  CHECK(twice.message() == "priority class \"system-critical\" already exists");
  MustCreate(world, NewClass("batch", -5));
  world.Restart();
  const v1::PriorityClass kept = Get(world, "system-critical").value();
  CHECK(kept.SerializeAsString() == made.SerializeAsString());
  CHECK(kept.preemption_policy() == v1::NEVER);
  v1::ListPriorityClassesResponse page = List(world, 1);
  REQUIRE(page.priority_classes_size() == 1);
  CHECK(page.priority_classes(0).name() == "batch");
  page = List(world, 1, page.next_page_token());
  REQUIRE(page.priority_classes_size() == 1);
  CHECK(page.priority_classes(0).name() == "system-critical");
  CHECK(page.next_page_token().empty());
  v1::PriorityClass wish = kept;
  wish.set_value(2000);
  wish.set_description("not in the mask");
  v1::PriorityClass changed;
  REQUIRE(Update(world, wish, {"value"}, &changed).ok());
  CHECK(changed.value() == 2000);
  CHECK(changed.description() == "for what must run");
  CHECK(changed.etag() != kept.etag());
  CHECK(absl::IsAborted(Update(world, wish, {"value"})));  // its etag is the former one
  CHECK(absl::IsAborted(Delete(world, "system-critical", kept.etag())));
  CHECK(Delete(world, "system-critical", changed.etag()).ok());
  world.Restart();
  CHECK(List(world).priority_classes_size() == 1);
  const absl::Status gone = Get(world, "batsh").status();
  CHECK(absl::IsNotFound(gone));
  CHECK(gone.message() == "there is no priority class \"batsh\"; did you mean \"batch\"?");
}

TEST_CASE("priority classes: what is refused") {
  ServiceWorld world;
  CHECK(absl::IsInvalidArgument(Create(world, NewClass("", 1))));
  CHECK(absl::IsInvalidArgument(Create(world, NewClass("High", 1))));
  CHECK(absl::IsInvalidArgument(Create(world, NewClass("high", 1'000'001))));
  v1::CreatePriorityClassRequest wordy = NewClass("wordy", 1);
  wordy.mutable_priority_class()->set_description("two\nlines");
  CHECK(absl::IsInvalidArgument(Create(world, wordy)));
  wordy.mutable_priority_class()->set_description(std::string(1025, 'x'));
  CHECK(absl::IsInvalidArgument(Create(world, wordy)));
  MustCreate(world, NewClass("high", 1));
  v1::PriorityClass high = Get(world, "high").value();
  CHECK(absl::IsInvalidArgument(Update(world, high, {})));
  CHECK(absl::IsInvalidArgument(Update(world, high, {"name"})));
  high.set_name("hihg");
  CHECK(Update(world, high, {"value"}).message() ==
        "there is no priority class \"hihg\"; did you mean \"high\"?");
  CHECK(absl::IsNotFound(Delete(world, "none")));
  for (int i = 1; i < 256; ++i) MustCreate(world, NewClass(absl::StrCat("c", i), i));
  const absl::Status full = Create(world, NewClass("one-more", 1));
  CHECK(absl::IsResourceExhausted(full));
  CHECK(full.message() == "there are at most 256 priority classes");
}

TEST_CASE("priority classes: a job takes its class when it is submitted, and keeps it") {
  ServiceWorld world([](config::v1::Server& config) {
    config.mutable_scheduling()->set_preemptible_below_priority(100);
  });
  world.CreateQueue("q");
  v1::CreatePriorityClassRequest create = NewClass("high", 1000);
  create.mutable_priority_class()->set_preemption_policy(v1::NEVER);
  MustCreate(world, create);
  MustCreate(world, NewClass("low", 5));
  REQUIRE(Submit(world, JobOfClass("important", "high")).ok());
  REQUIRE(Submit(world, JobOfClass("whenever", "low")).ok());
  v1::PriorityClass wish = Get(world, "high").value();
  wish.set_value(1);
  REQUIRE(Update(world, wish, {"value"}).ok());
  REQUIRE(Delete(world, "low").ok());
  const auto check = [&] {
    const v1::JobSpec important = world.MustGetJob("important").spec();
    CHECK(important.priority() == 1000);
    CHECK(important.priority_class() == "high");
    CHECK(important.preemption_policy() == v1::NEVER);
    CHECK_FALSE(important.preemptible());
    const v1::JobSpec whenever = world.MustGetJob("whenever").spec();
    CHECK(whenever.priority() == 5);
    CHECK(whenever.priority_class() == "low");
    CHECK(whenever.preemption_policy() == v1::PREEMPTION_POLICY_UNSPECIFIED);
    CHECK(whenever.preemptible());  // below scheduling.preemptible_below_priority
  };
  check();
  world.Restart();
  check();
}

TEST_CASE("priority classes: the global default") {
  ServiceWorld world;
  world.CreateQueue("q");
  v1::CreatePriorityClassRequest usual = NewClass("usual", 50);
  usual.mutable_priority_class()->set_global_default(true);
  MustCreate(world, usual);
  usual.mutable_priority_class()->set_name("other");
  CHECK(absl::IsFailedPrecondition(Create(world, usual)));
  MustCreate(world, NewClass("zero", 0));
  v1::SubmitJobsRequest own = JobOfClass("own", "");
  own.mutable_jobs(0)->mutable_spec()->set_priority(7);
  v1::SubmitJobsRequest preempts = JobOfClass("never", "");
  preempts.mutable_jobs(0)->mutable_spec()->set_preemption_policy(v1::NEVER);
  for (const auto& request :
       {JobOfClass("silent", ""), own, JobOfClass("zero", "zero"), preempts}) {
    REQUIRE(Submit(world, request).ok());
  }
  CHECK(world.MustGetJob("silent").spec().priority() == 50);
  CHECK(world.MustGetJob("silent").spec().priority_class() == "usual");
  CHECK(world.MustGetJob("own").spec().priority() == 7);
  CHECK(world.MustGetJob("own").spec().priority_class().empty());
  CHECK(world.MustGetJob("zero").spec().priority() == 0);
  CHECK(world.MustGetJob("never").spec().preemption_policy() == v1::NEVER);
}

TEST_CASE("priority classes: jobs that are refused") {
  ServiceWorld world;
  world.CreateQueue("q");
  v1::CreatePriorityClassRequest never = NewClass("polite", 10);
  never.mutable_priority_class()->set_preemption_policy(v1::NEVER);
  MustCreate(world, never);
  const absl::Status unknown = Submit(world, JobOfClass("a", "polit"));
  CHECK(absl::IsNotFound(unknown));
  CHECK(unknown.message() ==
        "jobs[0].spec.priority_class: there is no priority class \"polit\"; did you mean "
        "\"polite\"?");
  v1::SubmitJobsRequest both = JobOfClass("a", "polite");
  both.mutable_jobs(0)->mutable_spec()->set_priority(3);
  const absl::Status refused = Submit(world, both);
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(refused.message() ==
        "jobs[0].spec.priority_class: sets the priority; leave out priority, which is 3");
  v1::SubmitJobsRequest evicts = JobOfClass("a", "polite");
  evicts.mutable_jobs(0)->mutable_spec()->set_preemption_policy(v1::PREEMPT_LOWER_PRIORITY);
  CHECK(absl::IsInvalidArgument(Submit(world, evicts)));
  v1::SubmitJobsRequest group = JobOfClass("a", "polite");
  v1::TaskGroup& first = *group.mutable_jobs(0)->mutable_spec()->mutable_groups(0);
  first.set_min_available(0);
  first.set_priority(11);
  const absl::Status above = Submit(world, group);
  CHECK(absl::IsInvalidArgument(above));
  CHECK(above.message() ==
        "jobs[0].spec.groups[0].priority: must be at most the value of priority class \"polite\", "
        "10, is 11");
  first.set_priority(10);
  CHECK(Submit(world, group).ok());
}

TEST_CASE("priority classes: a store of an older format waits until the upgrade is final") {
  ServiceWorld world({}, 9);
  const absl::Status refused = Create(world, NewClass("high", 1));
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK(refused.message() ==
        "priority classes need store format 10, and the store has 9: run `berth cluster finalize` "
        "first");
  v1::FinalizeUpgradeResponse response;
  REQUIRE(Call(*world.cluster, &v1::ClusterService::Stub::FinalizeUpgrade,
               v1::FinalizeUpgradeRequest(), &response)
              .ok());
  CHECK(Create(world, NewClass("high", 1)).ok());
}

}  // namespace
}  // namespace berth::testing
