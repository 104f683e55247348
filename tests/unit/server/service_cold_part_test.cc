// Data that is read from the store only on demand.
#include <catch2/catch.hpp>

#include "server/services/cold_part.h"
#include "storage/keys.h"
#include "storage/memory/memory_store.h"

namespace berth::testing {

TEST_CASE("jobs: a stored command that does not decode is counted as damage") {
  MemoryStore store;
  const Batch batch{
      .sequence = 1, .records = {{RecordKind::kJobSpec, JobKey(JobId{1}), "\xff"}}, .log = ""};
  REQUIRE(store.Append({&batch}).ok());
  v1::Job job;
  job.set_uid(1);
  CHECK(absl::IsDataLoss(AddColdPart(store, job)));
  CHECK(absl::IsDataLoss(ReadColdPart(store, JobId{1}, "j", job.mutable_spec())));
  CHECK(store.read_errors() == 2);
  CHECK(absl::IsNotFound(ReadColdPart(store, JobId{2}, "j", job.mutable_spec())));
  CHECK(store.read_errors() == 2);
}

}  // namespace berth::testing
