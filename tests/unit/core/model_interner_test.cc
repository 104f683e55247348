#include <catch2/catch.hpp>

#include "core/model/interner.h"
#include "tests/unit/core/model_world.h"

namespace berth {
namespace {

TEST_CASE("resource kinds: cpu and memory are fixed, others follow, up to a maximum", "[model]") {
  Interner interner;
  CHECK(interner.FindKind("cpu") == kCpu);
  CHECK(interner.FindKind("memory") == kMemory);
  CHECK(interner.FindKind("gpu") == std::nullopt);
  const ResourceKind gpu = interner.AddKind("gpu");
  CHECK(interner.AddKind("gpu") == gpu);
  CHECK(interner.KindName(gpu) == "gpu");
  for (size_t i = interner.kind_count(); i < kMaxResourceKinds - 1; ++i) {
    interner.AddKind("kind-" + std::to_string(i));
  }
  CHECK(interner.CanAddKinds({"gpu", "last", "last", "cpu"}).ok());
  const absl::Status full = interner.CanAddKinds({"last", "too-many"});
  CHECK(full.code() == absl::StatusCode::kResourceExhausted);
  CHECK(std::string(full.message()) ==
        "resource \"too-many\" exceeds the limit of 16 kinds of resources per cluster");
}

TEST_CASE("a shape's resources are the sum of its requests", "[model]") {
  Interner interner;
  GroupSpec group = GroupOfGpus("w", 2, 4);
  group.shape.extended = {{"license", 3}};
  const JobTemplate* shared = interner.AcquireTemplate({group}, {});
  const ShapeEntry& shape = interner.Shape(shared->groups[0].shape);
  CHECK(shape.resources[kCpu] == 1000);
  CHECK(shape.resources[kMemory] == 1 << 20);
  CHECK(shape.resources[*interner.FindKind("gpu")] == 4 * kWhole);
  CHECK(shape.resources[*interner.FindKind("license")] == 3);
  CHECK(shape.device_count == 4);
  interner.ReleaseTemplate(shared);
}

TEST_CASE("equal jobs share one template, and the last one frees it", "[model]") {
  Interner interner;
  const GroupSpec small = GroupOfGpus("w", 2, 1);
  const GroupSpec other_name = GroupOfGpus("v", 2, 1);
  const JobTemplate* first = interner.AcquireTemplate({small}, {});
  const JobTemplate* second = interner.AcquireTemplate({small}, {});
  const JobTemplate* third = interner.AcquireTemplate({other_name}, {});
  CHECK(first == second);
  CHECK(first != third);
  CHECK(first->groups[0].shape == third->groups[0].shape);  // names are not part of a shape
  const ShapeId shape = first->groups[0].shape;
  CHECK(interner.shapes().size() == 1);
  interner.ReleaseTemplate(first);
  interner.ReleaseTemplate(third);
  CHECK(interner.shapes().size() == 1);
  interner.ReleaseTemplate(second);
  CHECK(interner.shapes().empty());
  // Never reused for another shape.
  const JobTemplate* again = interner.AcquireTemplate({GroupOfGpus("w", 1, 8)}, {});
  CHECK(again->groups[0].shape != shape);
  interner.ReleaseTemplate(again);
}

TEST_CASE("tasks of several groups are numbered consecutively", "[model]") {
  Interner interner;
  const JobTemplate* shared =
      interner.AcquireTemplate({GroupOfGpus("a", 3, 0), GroupOfGpus("b", 2, 1)}, {});
  CHECK(shared->groups[0].first_task == 0);
  CHECK(shared->groups[1].first_task == 3);
  interner.ReleaseTemplate(shared);
}

}  // namespace
}  // namespace berth
