#include "clients/agent/identity.h"

#include <catch2/catch.hpp>

#include "tests/unit/agent/fakes.h"

namespace berth {
namespace {

TEST_CASE("identity: an agent id lasts as long as its disk, a boot id as long as the boot") {
  const testing::TemporaryDirectory directory;
  const auto open = [&] { return *FileJournal::Open(SystemDisk(), directory.path(), {}); };
  auto journal = open();
  CHECK(*KeepIdentity(*journal, "boot-1", "first"));
  CHECK(journal->state().identity.agent_id() == "first");
  journal = open();
  CHECK_FALSE(*KeepIdentity(*journal, "boot-1", "second"));
  CHECK(journal->state().identity.agent_id() == "first");
  CHECK(*KeepIdentity(*journal, "boot-2", "second"));
  journal = open();
  CHECK_FALSE(*KeepIdentity(*journal, "boot-2", "second"));
  CHECK(journal->state().identity.agent_id() == "first");
  CHECK(journal->state().identity.boot_id() == "boot-2");
}

}  // namespace
}  // namespace berth
