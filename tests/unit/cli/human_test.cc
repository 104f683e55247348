#include "clients/cli/human.h"

#include <catch2/catch.hpp>
#include <clocale>
#include <string>

#include "clients/cli/table.h"

namespace berth {
namespace {

TEST_CASE("durations have two units") {
  CHECK(HumanDuration(absl::Seconds(-5)) == "0s");
  CHECK(HumanDuration(absl::Milliseconds(900)) == "0s");
  CHECK(HumanDuration(absl::Seconds(45)) == "45s");
  CHECK(HumanDuration(absl::Seconds(192)) == "3m12s");
  CHECK(HumanDuration(absl::Minutes(60)) == "1h");
  CHECK(HumanDuration(absl::Minutes(303)) == "5h3m");
  CHECK(HumanDuration(absl::Hours(24 * 12 + 4)) == "12d4h");
}

TEST_CASE("quantities have three digits") {
  CHECK(HumanBytes(0) == "0");
  CHECK(HumanBytes(1023) == "1023");
  CHECK(HumanBytes(int64_t{3} << 39) == "1.5Ti");
  CHECK(HumanBytes(int64_t{80} << 30) == "80Gi");
  CHECK(HumanBytes(1'234'567'890) == "1.15Gi");
  CHECK(HumanCpu(96'000) == "96");
  CHECK(HumanCpu(1'500) == "1.5");
  CHECK(HumanCpu(250) == "0.25");
  v1::ResourceList list;
  CHECK(HumanResources(list) == "-");
  list.set_memory_bytes(int64_t{1} << 40);
  (*list.mutable_counts())["gpu"] = 8;
  (*list.mutable_counts())["fpga"] = 2;
  CHECK(HumanResources(list) == "memory 1Ti, fpga 2, gpu 8");
}

TEST_CASE("reasons are one sentence") {
  v1::WaitReason reason;
  reason.set_code(v1::WaitReason::INSUFFICIENT_RESOURCES);
  reason.set_resource("gpu");
  reason.set_needed(64);
  reason.set_free(32);
  CHECK(HumanReason(reason) == "needs 64 gpu, 32 free");
  reason.set_resource("cpu");
  reason.set_needed(1500);
  reason.set_free(500);
  reason.set_group("worker");
  CHECK(HumanReason(reason) == "needs cpu 1.5, 0.5 free, group worker");
  v1::WaitReason limit;
  limit.set_code(v1::WaitReason::QUEUE_LIMIT);
  limit.set_resource("gpu");
  limit.set_needed(520);
  limit.set_limit(256);
  limit.set_queue("research");
  CHECK(HumanReason(limit) == "limit of queue research: gpu 256 (needs 520 gpu, 0 free)");
  limit.set_never(true);
  CHECK(HumanReason(limit) ==
        "can never start: requests gpu 520, the limit of queue research is 256");
  for (int code = 1; code <= v1::WaitReason::Code_MAX; ++code) {
    v1::WaitReason any;
    any.set_code(static_cast<v1::WaitReason::Code>(code));
    CHECK_FALSE(HumanReason(any).empty());
  }
}

TEST_CASE("states are words") {
  CHECK(JobStateWord(v1::JOB_PENDING).text == "Pending");
  CHECK(TaskStateWord(v1::TASK_RUNNING).text == "Running");
  CHECK(QueueStateWord(v1::QUEUE_OPEN).text == "Open");
  v1::NodeStatus status;
  status.set_state(v1::NODE_READY);
  CHECK(NodeStateWord(status).text == "Ready");
  status.set_cordoned(true);
  CHECK(NodeStateWord(status).text == "Ready,Cordoned");
  status.set_draining(true);
  CHECK(NodeStateWord(status).text == "Ready,Draining");
}

TEST_CASE("faults of nodes count half after each week") {
  const absl::Time now = absl::FromUnixSeconds(1'000'000'000);
  v1::NodeStatus status;
  CHECK(NodeFaultsText(status, now).empty());
  status.set_faults(5);
  status.mutable_fault_time()->set_seconds(1'000'000'000);
  CHECK(NodeFaultsText(status, now) == "5.0");
  CHECK(NodeFaultsText(status, now + absl::Hours(7 * 24)) == "2.5");
  CHECK(NodeFaultsText(status, now + absl::Hours(7 * 24 * 10)).empty());
  CHECK(NodeReason(status, now, absl::UTCTimeZone()) ==
        "fails again and again: cordon and repair it");
  CHECK(NodeReason(status, now + absl::Hours(7 * 24), absl::UTCTimeZone()).empty());
  status.set_cordoned(true);
  status.set_reason("fan");
  CHECK(NodeReason(status, now, absl::UTCTimeZone()) == "fan");
}

Table Sample() {
  Table table(
      {{"NAME", Column::kTree}, {"COUNT", Column::kRight}, {"NOTE", Column::kWide}, {"END"}});
  const size_t a = table.AddRow({{"a"}, {"1"}, {"x"}, {"", Color::kNone}});
  const size_t b = table.AddRow({{"b"}, {"100"}, {"y"}, {"two words"}}, a);
  table.AddRow({{"c"}, {"7"}, {"z"}, {"e"}}, b);
  table.AddRow({{"d"}, {"8"}, {"z"}, {"e"}}, a);
  return table;
}

TEST_CASE("tables") {
  CHECK(Sample().Render({}) ==
        "NAME   COUNT  END\n"
        "a          1  -\n"
        "  b      100  two words\n"
        "    c      7  e\n"
        "  d        8  e\n");
  CHECK(Sample().Render({.wide = true, .headers = false}) ==
        "a          1  x     -\n"
        "  b      100  y     two words\n"
        "    c      7  z     e\n"
        "  d        8  z     e\n");
  CHECK(Table({{"A"}}).Render({}) == "");
}

TEST_CASE("colors are printed only on request") {
  Table table({{"STATE"}});
  table.AddRow({{"Running", Color::kGreen}});
  CHECK(table.Render({}) == "STATE\nRunning\n");
  CHECK(table.Render({.colors = true}).find("\033[32mRunning\033[0m") != std::string::npos);
}

TEST_CASE("a table aligns text that is not ASCII in any locale") {
  const std::string before = std::setlocale(LC_CTYPE, nullptr);
  for (const char* locale : {"C", "C.UTF-8"}) {
    REQUIRE(std::setlocale(LC_CTYPE, locale) != nullptr);
    Table table({{"NAME"}, {"REASON"}});
    table.AddRow({{"a"}, {"caf\xc3\xa9 closed"}});
    CHECK(table.Render(TableStyle()) == "NAME  REASON\na     caf\xc3\xa9 closed\n");
    CHECK(std::setlocale(LC_CTYPE, nullptr) == std::string(locale));
  }
  std::setlocale(LC_CTYPE, before.c_str());
}

}  // namespace
}  // namespace berth
