// Values, hosts, patterns, labels and numbers.
#include <catch2/catch.hpp>
#include <csignal>

#include "absl/strings/ascii.h"
#include "clients/slurm/child_process.h"
#include "clients/slurm/file_pattern.h"
#include "clients/slurm/frames.h"
#include "clients/slurm/hosts.h"
#include "clients/slurm/job_fields.h"
#include "clients/slurm/job_label.h"
#include "clients/slurm/job_state.h"
#include "clients/slurm/json.h"
#include "clients/slurm/numbers.h"
#include "clients/slurm/values.h"
#include "clients/slurm/variables.h"

namespace berth {
namespace {

TEST_CASE("slurm values: times") {
  const std::pair<const char*, absl::Duration> good[] = {
      {"30", absl::Minutes(30)},
      {"2:30", absl::Seconds(150)},
      {"1:30:00", absl::Minutes(90)},
      {"1-12", absl::Hours(36)},
      {"1-12:30", absl::Hours(36) + absl::Minutes(30)},
      {"1-0:0:5", absl::Hours(24) + absl::Seconds(5)},
      {"UNLIMITED", absl::InfiniteDuration()},
      {"0", absl::InfiniteDuration()}};
  for (const auto& [text, expected] : good) {
    INFO(text);
    const auto time = ParseSlurmTime(text);
    REQUIRE(time.ok());
    CHECK(*time == expected);
  }
  for (const char* text : {"", "x", "1:2:3:4", "-5", "1-", "1h", "1-2-3"}) {
    INFO(text);
    CHECK_FALSE(ParseSlurmTime(text).ok());
  }
  CHECK(SlurmElapsed(absl::Hours(25) + absl::Seconds(3)) == "1-01:00:03");
  CHECK(ShortElapsed(absl::Seconds(63)) == "1:03");
  CHECK(ShortElapsed(absl::Seconds(3663)) == "1:01:03");
}

TEST_CASE("slurm values: memory") {
  const std::pair<const char*, int64_t> good[] = {{"4096", int64_t{4096} << 20},
                                                  {"16GB", int64_t{16} << 30},
                                                  {"1.5G", int64_t{1536} << 20},
                                                  {"2t", int64_t{2} << 40},
                                                  {"1K", 1 << 20},
                                                  {"0", 0}};
  for (const auto& [text, expected] : good) {
    INFO(text);
    CHECK(*ParseSlurmMemory(text) == expected);
  }
  for (const char* text : {"", "G", "B", "4X", "-1", "1e3"})
    CHECK_FALSE(ParseSlurmMemory(text).ok());
  CHECK(SlurmMemory(int64_t{16} << 30) == "16G");
  CHECK(SlurmMemory(int64_t{1536} << 20) == "1536M");
}

TEST_CASE("slurm values: signals") {
  CHECK(*ParseSignal("USR2") == SIGUSR2);
  CHECK(*ParseSignal("SIGTERM") == SIGTERM);
  CHECK(*ParseSignal("9") == 9);
  CHECK_FALSE(ParseSignal("NOPE").ok());
  const auto before = ParseSignalBefore("B:USR1@90");
  CHECK(before->signal == SIGUSR1);
  CHECK(before->batch);
  CHECK(before->before == absl::Seconds(90));
  CHECK(ParseSignalBefore("USR2")->before == absl::Seconds(60));
  CHECK_FALSE(ParseSignalBefore("R:USR2").ok());
}

TEST_CASE("slurm hosts: ranges in the order of the nodes") {
  CHECK(CompressHosts({"n1", "n2", "n3", "x", "n7"}) == "n[1-3],x,n7");
  CHECK(CompressHosts({"n08", "n09", "n10"}) == "n[08-10]");
  CHECK(CompressHosts({"n9", "n10"}) == "n[9,10]");
  CHECK(CompressHosts({"n2", "n1"}) == "n[2,1]");
  CHECK(CompressHosts({"a"}) == "a");
  CHECK(CompressHosts({}).empty());
  CHECK(CompressCounts({2, 2, 2, 1}) == "2(x3),1");
}

TEST_CASE("slurm patterns: letters, widths and what only the node knows") {
  const PatternValues values{.job = "42",
                             .array_job = "40",
                             .array_index = "7",
                             .name = "a%b",
                             .user = "ada",
                             .host = "n1.example",
                             .step = "3",
                             .node = 1,
                             .task = 5};
  CHECK(ExpandPattern("%x-%j_%4t-%A.%a-%N-%n-%u-%s-%%", values) == "a%b-42_0005-40.7-n1-1-ada-3-%");
  CHECK(ExpandPattern("\\%j", values) == "%j");
  CHECK(ExpandForNodes("%x-%j_%3t-%N%%", values) == "a%%b-42_%3t-%N%%");
  CHECK(ExpandPattern(ExpandForNodes("%x-%3t%%", values), values) == "a%b-005%");
  CHECK(IsPerTask("a%2t"));
  CHECK_FALSE(IsPerTask("a%%t%j"));
  CHECK(CheckPattern("%j%%").ok());
  CHECK_FALSE(CheckPattern("%q").ok());
  CHECK_FALSE(CheckPattern("x%").ok());
}

TEST_CASE("slurm labels: any text comes back, and plain names are plain labels") {
  for (const std::string& text :
       {std::string("train_1"), std::string("nf-align_(3)"), std::string("e.x"), std::string(".a."),
        std::string(200, '('), std::string("k\xc3\xb6nig"), std::string("-")}) {
    INFO(text);
    v1::JobSpec spec;
    REQUIRE(SetTextLabel(&spec, kNameLabel, text).ok());
    CHECK(TextLabel(spec, kNameLabel) == text);
    for (const auto& [key, value] : spec.labels()) {
      CHECK(value.size() <= 63);
      CHECK(absl::ascii_isalnum(static_cast<unsigned char>(value.front())));
      CHECK(absl::ascii_isalnum(static_cast<unsigned char>(value.back())));
    }
  }
  v1::JobSpec spec;
  REQUIRE(SetTextLabel(&spec, kNameLabel, "plain").ok());
  CHECK(spec.labels().at("slurm/name") == "plain");
  CHECK_FALSE(SetTextLabel(&spec, kNameLabel, std::string(300, 'x')).ok());
}

TEST_CASE("slurm numbers") {
  CHECK(ParseJobNumbers("12")->front().uid == 12);
  CHECK(*ParseJobNumbers("12_4")->front().index == 4);
  CHECK(ParseJobNumbers("12_[1-3,7%2]")->size() == 4);
  CHECK(ParseJobNumbers("12.batch", true)->front().uid == 12);
  for (const char* text : {"", "x", "12.0", "12_", "12_[3-1]", "12_[0-999999]", "0", "-1"}) {
    INFO(text);
    CHECK_FALSE(ParseJobNumbers(text).ok());
  }
  v1::Job job;
  job.set_uid(99);
  CHECK(NumberOf(job) == "99");
  job.mutable_status()->mutable_member_of()->set_series("job-12");
  job.mutable_status()->mutable_member_of()->set_index(4);
  CHECK(NumberOf(job) == "12_4");
  job.mutable_status()->mutable_member_of()->set_series("mine");
  CHECK(NumberOf(job) == "99");
}

TEST_CASE("slurm states: how a job failed") {
  const auto state = [](v1::JobState s, const char* message) {
    v1::Job job;
    job.mutable_status()->set_state(s);
    job.mutable_status()->set_message(message);
    return std::string(StateOf(job).brief) + " " + ReasonOf(job);
  };
  CHECK(state(v1::JOB_FAILED, "walltime of 2s used up") == "TO TimeLimit");
  CHECK(state(v1::JOB_FAILED, "node-0 ran out of memory on n1 (exit 137)") == "OOM OutOfMemory");
  CHECK(state(v1::JOB_FAILED, "node-0 was lost on n1") == "NF NodeDown");
  CHECK(state(v1::JOB_FAILED, "node-0 was evicted for job x") == "PR None");
  CHECK(state(v1::JOB_FAILED, "cannot start any more: job a failed") ==
        "CA DependencyNeverSatisfied");
  // What the program printed does not count.
  CHECK(state(v1::JOB_FAILED, "node-0 exited with 1 on n1: ran out of memory") ==
        "F NonZeroExitCode");
  CHECK(state(v1::JOB_SUSPENDED, "") == "PD JobHeldUser");
  CHECK(state(v1::JOB_RESTARTING, "") == "RQ None");
  CHECK(ParseStates("pd,RUNNING")->size() == 2);
  CHECK(ParseStates("all")->empty());
  CHECK_FALSE(ParseStates("flying").ok());
}

TEST_CASE("slurm fields: formats") {
  std::string after;
  const auto columns = ParseLetters("[%.5i|%10j%t]", &after);
  REQUIRE(columns->size() == 3);
  CHECK((*columns)[0].before == "[");
  CHECK((*columns)[0].right);
  CHECK((*columns)[1].width == 10);
  CHECK(after == "]");
  CHECK_FALSE(ParseLetters("%s", &after).ok());
  CHECK((*ParseQueueNames("JobID:5,name"))[1].width == 20);
  CHECK((*ParseAccountNames("JobID%-5,state"))[0].width == 5);
  CHECK_FALSE(ParseAccountNames("Nope").ok());
  CHECK_FALSE(ParseAccountNames("TotalCPU").ok());
}

TEST_CASE("slurm frames: pieces of any size") {
  const std::string bytes =
      EncodeFrame(FrameKind::kOutput, EncodeNumber(7) + "text") + EncodeFrame(FrameKind::kEnd, "");
  FrameReader reader;
  std::vector<Frame> frames;
  for (const char c : bytes) {
    reader.Add({&c, 1});
    while (auto frame = reader.Next()) frames.push_back(*frame);
  }
  REQUIRE(frames.size() == 2);
  CHECK(TakeNumber(&frames[0].data) == 7);
  CHECK(frames[0].data == "text");
  CHECK(frames[1].kind == FrameKind::kEnd);
  FrameReader broken;
  broken.Add("o\xff\xff\xff\x7fx");
  CHECK_FALSE(broken.Next().has_value());
  CHECK(broken.broken());
}

TEST_CASE("slurm variables: the submitter's, without what is Berth's") {
  const Variables own = {{"HOME", "/nobody"},    {"RANK", "1"},
                         {"PET_NNODES", "2"},    {"CUDA_VISIBLE_DEVICES", "GPU-1"},
                         {"BERTH_JOB", "job-1"}, {"BERTH_SLURM_BATCH_0", "x"}};
  const Variables set = JobVariables(
      {{"HOME", "/home/ada"}, {"CUDA_VISIBLE_DEVICES", "7"}, {"BERTH_SERVER", "x"}, {"MINE", "1"}},
      own);
  CHECK(set == Variables{{"HOME", "/home/ada"},
                         {"CUDA_VISIBLE_DEVICES", "GPU-1"},
                         {"MINE", "1"},
                         {"BERTH_JOB", "job-1"}});
}

TEST_CASE("slurm variables: a batch travels in pieces") {
  cli::v1::SlurmBatch batch;
  batch.set_script(std::string(200'000, 'x'));
  v1::TaskGroup group;
  REQUIRE(SetBatch(batch, &group).ok());
  CHECK(group.env_size() > 1);
  Variables own;
  for (const v1::EnvVar& variable : group.env()) {
    CHECK(variable.value().size() < 128 << 10);
    own[variable.name()] = variable.value();
  }
  CHECK(BatchOf(own)->script() == batch.script());
  CHECK_FALSE(BatchOf({}).ok());
  batch.set_script(std::string(1 << 20, 'x'));
  CHECK_FALSE(SetBatch(batch, &group).ok());
}

TEST_CASE("slurm child process: interpreters") {
  using Words = std::vector<std::string>;
  CHECK(InterpreterOf("#!/bin/sh\n") == Words{"/bin/sh"});
  CHECK(InterpreterOf("#! /usr/bin/env  python3 -u\n") == Words{"/usr/bin/env", "python3 -u"});
  CHECK(InterpreterOf("echo").empty());
}

TEST_CASE("slurm json: quotes and nesting") {
  CHECK(JsonObject({{"a", "x\"\n"}, {"b", JsonList({Json(1), Json(true)})}}).text ==
        R"({"a": "x\"\u000a", "b": [1, true]})");
  CHECK(JsonObject({{"name", "value"}}).text == R"({"name": "value"})");
}

}  // namespace
}  // namespace berth
