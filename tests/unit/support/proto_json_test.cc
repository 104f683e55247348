// JSON of messages.
#include "support/proto_json.h"

#include <catch2/catch.hpp>
#include <limits>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "berth/v1/job.pb.h"
#include "berth/v1/types.pb.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "support/yaml_proto.h"

namespace berth {
namespace {

TEST_CASE("json: maps are sorted by key, whatever the order of insertion") {
  v1::ResourceList one, other;
  for (int i = 10; i < 60; ++i) (*one.mutable_counts())[absl::StrCat("k", i)] = i;
  for (int i = 59; i >= 10; --i) (*other.mutable_counts())[absl::StrCat("k", i)] = i;
  const std::string text = WriteJson(one);
  CHECK(text == WriteJson(other));
  CHECK(text.rfind("{\"counts\":{\"k10\":10,\"k11\":11,", 0) == 0);
  for (int i = 11; i < 60; ++i) {
    CHECK(text.find(absl::StrCat("\"k", i - 1, "\"")) < text.find(absl::StrCat("\"k", i, "\"")));
  }
}

TEST_CASE("json: zeros are left out or printed on request, and absent fields are never printed") {
  v1::TopologyConstraint one;
  one.set_kind("nvlink");
  CHECK(WriteJson(one) == R"({"highestTier":0,"kind":"nvlink"})");
  CHECK(WriteJson(one, {.zeros = true}) ==
        R"({"mode":"MODE_UNSPECIFIED","highestTier":0,"highestTierName":"","kind":"nvlink"})");
  CHECK(WriteJson(one, {.indented = true}) == "{\n \"highestTier\": 0,\n \"kind\": \"nvlink\"\n}");
  v1::ResourceList list;
  list.set_cpu_millis(0);
  CHECK(WriteJson(list) == R"({"cpu":0})");
  CHECK(WriteJson(list, {.zeros = true}) == R"({"cpu":0,"counts":{}})");
}

TEST_CASE("json: an index and a rank of 0 are printed") {
  v1::Task task;
  task.set_group("w");
  const std::string text = WriteJson(task);
  INFO(text);
  CHECK(text.find(R"("index":0,"rank":0)") != std::string::npos);
  CHECK(text.find("exitCode") == std::string::npos);  // it has presence and is not set
  task.set_exit_code(0);
  CHECK(WriteJson(task).find(R"("exitCode":0)") != std::string::npos);
}

TEST_CASE("json: 0 in a spec is the default and left out, except for the priority") {
  v1::Job job;
  job.mutable_spec()->add_groups()->set_name("w");
  job.mutable_status()->set_state(v1::JOB_PENDING);
  job.mutable_status()->add_reasons()->set_resource("gpu");
  CHECK(
      WriteJson(job) ==
      R"({"uid":0,"spec":{"priority":0,"groups":[{"name":"w"}]},)"
      R"("status":{"state":"JOB_PENDING","reasons":[{"resource":"gpu","needed":0,"free":0,"limit":0,"nodes":0}],)"
      R"("retries":0,"startCount":0,"evictions":0,"epoch":0,"rung":0}})");
  CHECK(WriteYaml(job, {.numbers = true}).find("    needed: 0\n") != std::string::npos);
  CHECK(WriteYaml(job).find("0") == std::string::npos);
}

TEST_CASE("json: 64-bit integers are numbers if every reader represents them exactly") {
  v1::ResourceList list;
  for (const auto& [value, text] : std::map<int64_t, std::string>{
           {96'000, "96000"},
           {-5, "-5"},
           {int64_t{1} << 53, "9007199254740992"},
           {(int64_t{1} << 53) + 1, R"("9007199254740993")"},
           {std::numeric_limits<int64_t>::min(), R"("-9223372036854775808")"}}) {
    list.set_memory_bytes(value);
    CHECK(WriteJson(list) == absl::StrCat(R"({"memory":)", text, "}"));
  }
}

TEST_CASE("json: protobuf's own parser accepts the output for any text") {
  v1::Job job;
  job.set_name("a\"\\\n\t\x01\x7f\xc2\x9b\xc3\xa9<>\xe2\x80\xae\xf0\x9f\x9a\xa2");
  job.set_uid(uint64_t{1} << 60);
  job.mutable_spec()->mutable_walltime()->set_seconds(3);
  job.mutable_spec()->mutable_walltime()->set_nanos(500'000'000);
  job.mutable_status()->mutable_submit_time()->set_seconds(1'795'000'000);
  (*job.mutable_spec()->mutable_labels())["k"] = "";
  job.mutable_status()->add_reasons()->set_needed(1e300);
  job.mutable_status()->add_reasons()->set_needed(std::numeric_limits<double>::infinity());
  for (const JsonStyle style :
       {JsonStyle{}, JsonStyle{.indented = true}, JsonStyle{.zeros = true}}) {
    const std::string text = WriteJson(job, style);
    INFO(text);
    CHECK(text.find('\x7f') == std::string::npos);
    CHECK(text.find("\xc2\x9b") == std::string::npos);  // a control character for terminals
    CHECK(text.find("\\u202e") != std::string::npos);
    v1::Job back;
    REQUIRE(google::protobuf::util::JsonStringToMessage(text, &back).ok());
    CHECK(google::protobuf::util::MessageDifferencer::Equals(back, job));
  }
}

}  // namespace
}  // namespace berth
