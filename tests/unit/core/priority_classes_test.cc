// Priority classes: what a change may do, and the one global default.
#include "core/model/priority_classes.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"

namespace berth {
namespace {

PriorityClass Class(const std::string& name, int32_t value, bool global_default = false) {
  return {.name = name,
          .value = value,
          .preempts = true,
          .global_default = global_default,
          .description = ""};
}

PriorityClassChange Set(std::vector<PriorityClass> classes) {
  return {.remove = {}, .set = std::move(classes)};
}

TEST_CASE("priority classes: create, replace, remove") {
  PriorityClasses classes;
  classes.Apply(Set({Class("high", 1000), Class("low", -5)}));
  REQUIRE(classes.Find("high") != nullptr);
  CHECK(classes.Find("high")->value == 1000);
  CHECK(classes.Find("hig") == nullptr);
  classes.Apply({.remove = {"low"}, .set = {Class("high", 7)}});
  CHECK(classes.all().size() == 1);
  CHECK(classes.Find("high")->value == 7);
  PriorityClasses again;
  REQUIRE(again.Check(classes.AsChange()).ok());
  again.Apply(classes.AsChange());
  CHECK(again == classes);
}

TEST_CASE("priority classes: at most one is the global default") {
  PriorityClasses classes;
  CHECK(classes.GlobalDefault() == nullptr);
  classes.Apply(Set({Class("usual", 10, true)}));
  REQUIRE(classes.GlobalDefault() != nullptr);
  CHECK(classes.GlobalDefault()->name == "usual");
  const absl::Status second = classes.Check(Set({Class("other", 20, true)}));
  CHECK(absl::IsFailedPrecondition(second));
  CHECK(second.message() ==
        "priority class \"usual\" is the global default already; set its global_default to false "
        "first");
  CHECK(classes.Check(Set({Class("usual", 11, true)})).ok());
  // In one change, in its order.
  CHECK(classes.Check(Set({Class("usual", 10), Class("other", 20, true)})).ok());
  CHECK_FALSE(classes.Check(Set({Class("other", 20, true), Class("usual", 10)})).ok());
  CHECK(classes.Check({.remove = {"usual"}, .set = {Class("other", 20, true)}}).ok());
  classes.Apply({.remove = {"usual"}, .set = {}});
  CHECK(classes.GlobalDefault() == nullptr);
}

TEST_CASE("priority classes: what is refused") {
  const PriorityClasses none;
  CHECK(absl::IsNotFound(none.Check({.remove = {"high"}, .set = {}})));
  CHECK(absl::IsInvalidArgument(none.Check(Set({Class("", 1)}))));
  CHECK(absl::IsInvalidArgument(none.Check(Set({Class(std::string(254, 'a'), 1)}))));
  CHECK(absl::IsInvalidArgument(none.Check(Set({Class("high", 1'000'001)}))));
  CHECK(absl::IsInvalidArgument(none.Check(Set({Class("low", -1'000'001)}))));
  PriorityClass wordy = Class("wordy", 1);
  wordy.description = std::string(1025, 'x');
  CHECK(absl::IsInvalidArgument(none.Check(Set({wordy}))));
  PriorityClasses full;
  for (size_t i = 0; i < PriorityClasses::kMost; ++i) {
    full.Apply(Set({Class(absl::StrCat("c", i), 1)}));
  }
  CHECK(absl::IsResourceExhausted(full.Check(Set({Class("more", 1)}))));
  CHECK(full.Check({.remove = {"c0"}, .set = {Class("more", 1)}}).ok());
}

}  // namespace
}  // namespace berth
