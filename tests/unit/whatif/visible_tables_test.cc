// Names and texts of scenarios, logs and stores reach a terminal as text, in every table of
// berth-sim.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "offline/replay/compare.h"
#include "offline/replay/replay_result.h"
#include "offline/sim/output.h"
#include "offline/sim/verify.h"
#include "offline/whatif/whatif_command.h"
#include "tests/unit/filled_message.h"

namespace berth {
namespace {

void CheckTable(const std::string& table) {
  CAPTURE(table);
  CHECK(table.find("\\x1b") != std::string::npos);  // it is there, escaped
  CHECK(IsHarmless(table));
}

TEST_CASE("tables of berth-sim escape control characters") {
  CheckTable(Printed(FilledWith<sim::v1::ScenarioResult>(kNasty), "table"));
  CheckTable(PrintedVerify(FilledWith<sim::v1::VerifyResult>(kNasty), "table"));
  CheckTable(PrintedWhatif(FilledWith<sim::v1::WhatifResult>(kNasty), "table"));
  CheckTable(replay::Printed(FilledWith<sim::v1::FillResult>(kNasty), "table"));
  for (const replay::TableOf of :
       {replay::TableOf::kAll, replay::TableOf::kQueues, replay::TableOf::kUsers}) {
    CheckTable(replay::Printed(FilledWith<sim::v1::ReplayResult>(kNasty), "table", of));
    CheckTable(
        replay::Printed({FilledWith<sim::v1::ReplayComparison>(kNasty)}, std::string("table"), of));
  }
}

}  // namespace
}  // namespace berth
