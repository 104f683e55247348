// berth priority-class, and PriorityClass manifests.
#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "clients/cli/manifest.h"
#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

v1::PriorityClass High() {
  v1::PriorityClass high;
  high.set_name("high");
  high.set_value(1000);
  high.set_preemption_policy(v1::NEVER);
  high.set_description("paid for");
  high.set_etag("e1");
  return high;
}

constexpr char kManifest[] = R"(apiVersion: berth/v1
kind: PriorityClass
name: high
value: 1000
preemptionPolicy: Never
description: "paid for"
)";

TEST_CASE("priority-class list and get") {
  Cli cli;
  v1::ListPriorityClassesResponse list;
  v1::PriorityClass& usual = *list.add_priority_classes();
  usual.set_name("a-usual");
  usual.set_value(5);
  usual.set_global_default(true);
  *list.add_priority_classes() = High();
  cli.script.Answer("ListPriorityClasses", list);
  CHECK(cli.Run({"priority-class", "list"}) == 0);
  CHECK(cli.out() ==
        "NAME     VALUE  PREEMPTS  DEFAULT  DESCRIPTION\n"
        "high      1000  no        -        paid for\n"
        "a-usual      5  yes       yes      -\n");
  CHECK(cli.Run({"get", "priorityclasses", "-o", "name"}) == 0);
  CHECK(cli.out() == "priority-class/a-usual\npriority-class/high\n");
  cli.script.Answer("GetPriorityClass", High());
  CHECK(cli.Run({"priority-class", "get", "pc/high", "-o", "yaml"}) == 0);
  CHECK(cli.out() == kManifest);
  Cli none;
  none.script.Answer("ListPriorityClasses", v1::ListPriorityClassesResponse());
  CHECK(none.Run({"priority-class", "list"}) == 0);
  CHECK(none.err() == "no priority classes; berth apply -f creates them (kind: PriorityClass)\n");
}

TEST_CASE("priority-class delete") {
  Cli cli;
  cli.script.Answer("DeletePriorityClass", v1::DeletePriorityClassResponse());
  CHECK(cli.Run({"priority-class", "delete", "high"}) == 0);
  CHECK(cli.out() == "priority-class/high deleted\n");
  Cli other;
  other.script.Answer("DeletePriorityClass",
                      absl::NotFoundError("there is no priority class \"hihg\"; did you mean "
                                          "\"high\"?"));
  CHECK(other.Run({"priority-class", "delete", "hihg"}) == 3);
  CHECK(other.err() == "berth: there is no priority class \"hihg\"; did you mean \"high\"?\n");
}

TEST_CASE("apply creates and updates priority classes") {
  const TempFile file(kManifest);
  Cli cli;
  cli.script.Answer("GetPriorityClass", absl::NotFoundError("none"));
  cli.script.Answer("CreatePriorityClass", High());
  CHECK(cli.Run({"apply", "-f", file.path()}) == 0);
  CHECK(cli.out() == "priority-class/high created\n");
  const auto created =
      cli.script.Requests<v1::CreatePriorityClassRequest>("CreatePriorityClass").back();
  CHECK(created.request_id().size() == 32);
  CHECK(created.priority_class().value() == 1000);
  CHECK(created.priority_class().preemption_policy() == v1::NEVER);
  CHECK(created.priority_class().description() == "paid for");
  Cli known;
  v1::PriorityClass before = High();
  before.set_value(7);
  before.set_etag("e0");
  known.script.Answer("GetPriorityClass", before);
  known.script.Answer("UpdatePriorityClass", High());
  CHECK(known.Run({"apply", "-f", file.path()}) == 0);
  CHECK(known.out() == "priority-class/high updated\n");
  const auto updated =
      known.script.Requests<v1::UpdatePriorityClassRequest>("UpdatePriorityClass").back();
  CHECK(updated.priority_class().etag() == "e0");
  CHECK(updated.update_mask().paths_size() == 4);
  known.script.Answer("GetPriorityClass", High());
  Cli same;
  same.script.Answer("GetPriorityClass", High());
  same.script.Answer("UpdatePriorityClass", High());
  CHECK(same.Run({"apply", "-f", file.path()}) == 0);
  CHECK(same.out() == "priority-class/high unchanged\n");
}

TEST_CASE("apply names the place of what is wrong in a priority class") {
  const TempFile file(kManifest);
  Cli cli;
  cli.script.Answer("GetPriorityClass", absl::NotFoundError("none"));
  cli.script.Answer("CreatePriorityClass", ViolationsError(absl::StatusCode::kInvalidArgument,
                                                           {{"priority_class.value", "too high"},
                                                            {"priority_class.name", "too long"}}));
  CHECK(cli.Run({"apply", "-f", file.path()}) == 4);
  CHECK(cli.err() == absl::StrCat(file.path(), ":4:8: value: too high\n", file.path(),
                                  ":3:7: name: too long\n"));
  std::vector<std::string> warnings;
  const auto error = [&](const std::string& text) {
    return std::string(ReadManifests(text, "f", {}, &warnings).status().message());
  };
  CHECK(error("apiVersion: berth/v1\nkind: PriorityClass\nvalue: 1\n") ==
        "f:1:1: a priority class needs a name");
  CHECK_THAT(error("apiVersion: berth/v1\nkind: PriorityClass\nname: a\nvalu: 1\n"),
             Contains("f:4:1: unknown key \"valu\"; did you mean \"value\"?"));
  CHECK_THAT(error("apiVersion: berth/v1\nkind: PriorityClas\nname: a\n"),
             Contains("did you mean \"PriorityClass\"?"));
}

TEST_CASE("the class of a job is in describe and in the wide list") {
  v1::Job job;
  job.set_name("a");
  job.mutable_spec()->set_queue("q");
  job.mutable_spec()->set_priority(1000);
  job.mutable_spec()->set_priority_class("high");
  Cli cli;
  cli.script.Answer("GetJob", job);
  cli.script.Answer("ListTasks", v1::ListTasksResponse());
  CHECK(cli.Run({"job", "describe", "a"}) == 0);
  CHECK_THAT(cli.out(), Contains("Priority:  1000 (class high)\n"));
  v1::ListJobsResponse list;
  *list.add_jobs() = job;
  cli.script.Answer("ListJobs", list);
  CHECK(cli.Run({"job", "list", "-o", "wide"}) == 0);
  CHECK_THAT(cli.out(), Contains("PRIORITY  CLASS") && Contains("1000  high"));
}

}  // namespace
}  // namespace berth
