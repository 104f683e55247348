// The quick form of submit: the jobs that options make, and errors of wrong options.
#include <catch2/catch.hpp>

#include "clients/cli/array_range.h"
#include "clients/cli/begin_time.h"
#include "google/protobuf/util/message_differencer.h"
#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

using Words = std::vector<std::string>;

v1::SubmitJobsRequest LastSubmit(Cli& cli) {
  return cli.script.Requests<v1::SubmitJobsRequest>("SubmitJobs").back();
}

Words Submit(const Words& options, const Words& command = {"train"}) {
  Words line = {"submit"};
  line.insert(line.end(), options.begin(), options.end());
  line.emplace_back("--");
  line.insert(line.end(), command.begin(), command.end());
  return line;
}

TEST_CASE("quick form: placement, image, user, preemption, begin") {
  Cli cli;
  cli.script.Answer("SubmitJobs", Submitted("n"));
  CHECK(cli.Run(Submit({"--begin", "2026-12-01T10:00", "--node-selector", "zone=b",
                        "--node-selector", "kind=a100", "--image", "team/torch:2.3", "--topology",
                        "hard:rack", "--run-as", "ada", "--preemptible"})) == 0);
  v1::JobSpec spec = LastSubmit(cli).jobs(0).spec();
  CHECK(absl::FromUnixSeconds(spec.start_after().seconds()) ==
        absl::FromCivil(absl::CivilMinute(2026, 12, 1, 10, 0), absl::UTCTimeZone()));
  CHECK(spec.groups(0).node_selector().match_labels().at("zone") == "b");
  CHECK(spec.groups(0).node_selector().match_labels().at("kind") == "a100");
  CHECK(spec.groups(0).image() == "team/torch:2.3");
  CHECK(spec.topology().mode() == v1::TopologyConstraint::HARD);
  CHECK(spec.topology().highest_tier_name() == "rack");
  CHECK(spec.run_as() == "ada");
  CHECK(spec.has_preemptible());
  CHECK(spec.preemptible());
  CHECK(cli.Run(Submit({"--preemptible=false", "--topology", "soft:2"})) == 0);
  spec = LastSubmit(cli).jobs(0).spec();
  CHECK(spec.has_preemptible());
  CHECK_FALSE(spec.preemptible());
  CHECK(spec.topology().mode() == v1::TopologyConstraint::SOFT);
  CHECK(spec.topology().highest_tier() == 2);
  CHECK(cli.Run(Submit({})) == 0);
  CHECK_FALSE(LastSubmit(cli).jobs(0).spec().has_preemptible());
}

TEST_CASE("quick form: an array is one job for each index, in one call") {
  Cli cli;
  cli.script.Answer("SubmitJobs", Submitted("sweep-1"));
  CHECK(cli.Run(Submit({"--name", "sweep", "--array", "1-5:2", "-e", "A=b"})) == 0);
  const v1::SubmitJobsRequest request = LastSubmit(cli);
  REQUIRE(request.jobs_size() == 3);
  CHECK(request.jobs(0).name() == "sweep-1");
  CHECK(request.jobs(2).name() == "sweep-5");
  const v1::JobSpec& spec = request.jobs(1).spec();
  CHECK(spec.labels().at("berth.array") == "sweep");
  std::map<std::string, std::string> env;
  for (const v1::EnvVar& variable : spec.groups(0).env()) env[variable.name()] = variable.value();
  CHECK(env == std::map<std::string, std::string>{{"A", "b"},
                                                  {"BERTH_ARRAY_COUNT", "3"},
                                                  {"BERTH_ARRAY_INDEX", "3"},
                                                  {"BERTH_ARRAY_JOB", "sweep"}});
}

TEST_CASE("quick form: indexes of arrays") {
  using Indexes = std::vector<int32_t>;
  CHECK(*ParseArrayRange("0-3") == Indexes{0, 1, 2, 3});
  CHECK(*ParseArrayRange("7") == Indexes{7});
  CHECK(*ParseArrayRange("5,1,3-4,4") == Indexes{1, 3, 4, 5});
  CHECK(*ParseArrayRange("0-100:50") == Indexes{0, 50, 100});
  CHECK(ParseArrayRange("0-999")->size() == 1000);
  CHECK(ParseArrayRange("0-1000").status().message() ==
        "more than 1000 jobs; an array is submitted in one call: split it");
  CHECK(ParseArrayRange("0-9%4").status().message() ==
        "a limit of jobs that run at the same time (%4) is not supported; remove it and set "
        "maxRunningJobs of the queue");
  for (const char* bad : {"", "-1", "a", "3-1", "1-", "0-9:0", "1000000", "1,,2", "5:2", "1 2"}) {
    INFO(bad);
    CHECK(absl::IsInvalidArgument(ParseArrayRange(bad).status()));
  }
}

TEST_CASE("quick form: times for --begin") {
  const absl::TimeZone zone = absl::FixedTimeZone(3600);
  const absl::Time now = absl::FromCivil(absl::CivilSecond(2026, 11, 24, 15, 30, 20), zone);
  const auto text = [&](const char* begin) {
    const absl::StatusOr<absl::Time> time = ParseBeginTime(begin, now, zone);
    return time.ok() ? absl::FormatTime("%Y-%m-%d %H:%M:%S", *time, zone)
                     : std::string(time.status().message());
  };
  CHECK(text("now") == "2026-11-24 15:30:20");
  CHECK(text("now+1hour") == "2026-11-24 16:30:20");
  CHECK(text("now+2days") == "2026-11-26 15:30:20");
  CHECK(text("now+40") == "2026-11-24 15:31:00");
  CHECK(text("now+5minutes") == "2026-11-24 15:35:20");
  CHECK(text("now + 5") ==
        "expected a time such as +10m, now+1hour, 16:00, tomorrow or "
        "2026-12-01T10:00, got \"now + 5\"");
  CHECK(text("+10m") == "2026-11-24 15:40:20");
  CHECK(text("+1h30m") == "2026-11-24 17:00:20");
  CHECK(text("16:00") == "2026-11-24 16:00:00");
  CHECK(text("15:00") == "2026-11-25 15:00:00");
  CHECK(text("noon") == "2026-11-25 12:00:00");
  CHECK(text("midnight") == "2026-11-25 00:00:00");
  CHECK(text("today") == "2026-11-24 15:30:20");
  CHECK(text("tomorrow") == "2026-11-25 00:00:00");
  CHECK(text("tomorrow+2hours") == "2026-11-25 02:00:00");
  CHECK(text("tomorrowT08:15") == "2026-11-25 08:15:00");
  CHECK(text("tomorrow 08:15") == "2026-11-25 08:15:00");
  CHECK(text("2026-12-01T10:00") == "2026-12-01 10:00:00");
  CHECK(text("2026-12-01 10:00:30") == "2026-12-01 10:00:30");
  CHECK(text("2026-12-01T10:00:30Z") == "2026-12-01 11:00:30");
  CHECK(text("2026-12-01") == "2026-12-01 00:00:00");
  for (const char* bad : {"", "+", "nowhere", "soon", "25:00", "tomorrowish", "2026-13-01", "10m",
                          "now+99999999999999999999", "99999-01-01"}) {
    INFO(bad);
    CHECK(absl::IsInvalidArgument(ParseBeginTime(bad, now, zone).status()));
  }
}

TEST_CASE("quick form: errors name the option") {
  Cli cli;
  const auto error = [&](const Words& options) {
    CHECK(cli.Run(Submit(options)) == 2);
    return cli.err();
  };
  CHECK(error({"--begin", "soon"}).find("berth: --begin: expected a time such as") == 0);
  CHECK(error({"--topology", "firm:rack"}).find("berth: --topology: expected MODE:TIER") == 0);
  CHECK(error({"--topology", "hard"}).find("berth: --topology: expected MODE:TIER") == 0);
  CHECK(error({"--array", "0-9%2", "--name", "a"}).find("berth: --array: a limit of jobs") == 0);
  CHECK(error({"--array", "0-9"}).find("berth: --array: give the array a name with --name") == 0);
  CHECK(error({"--node-selector", "zone"}).find("--node-selector: expected KEY=VALUE") == 0);
  CHECK(cli.script.Requests<v1::SubmitJobsRequest>("SubmitJobs").empty());

  cli.script.Answer(
      "SubmitJobs",
      ViolationsError(absl::StatusCode::kInvalidArgument,
                      {{"jobs[0].spec.queue", "no such queue"},
                       {"jobs[1].spec.queue", "no such queue"},
                       {"jobs[0].spec.start_after", "too late"},
                       {"jobs[0].spec.run_as", "not permitted"},
                       {"jobs[0].spec.topology.highest_tier_name", "no such tier"},
                       {"jobs[0].spec.groups[0].image", "wrong"},
                       {"jobs[0].spec.groups[0].node_selector.match_labels[\"a\"]", "wrong"},
                       {"jobs[0].spec.groups[0].resources.devices[0].count", "too many"},
                       {"jobs[0].spec.labels[\"berth.array\"]", "too long"}}));
  CHECK(cli.Run(Submit({"--gpus", "8", "--name", "a", "--array", "0-1"})) == 4);
  CHECK(cli.err() ==
        "berth: --queue: no such queue\nberth: --begin: too late\nberth: --run-as: not permitted\n"
        "berth: --topology: no such tier\nberth: --image: wrong\nberth: --node-selector: wrong\n"
        "berth: --gpus: too many\nberth: --array: too long\n");
  Cli other;
  other.script.Answer("SubmitJobs",
                      absl::PermissionDeniedError("jobs[0].spec.run_as: not allowed"));
  CHECK(other.Run(Submit({"--run-as", "ada"})) == 1);
  CHECK(other.err() == "berth: --run-as: not allowed\n");
}

TEST_CASE("quick form: --dry-run -o yaml prints a manifest that submits the same job") {
  Cli cli;
  cli.script.Answer("SubmitJobs", v1::SubmitJobsResponse());
  const Words options = {"--name",
                         "sweep",
                         "--array",
                         "0-1",
                         "--begin",
                         "+10m",
                         "--gpus",
                         "2",
                         "--memory",
                         "3G",
                         "--walltime",
                         "1h",
                         "--env",
                         "A=b c",
                         "--topology",
                         "soft:1",
                         "--preemptible=false",
                         "--node-selector",
                         "zone=b"};
  Words dry = options;
  dry.insert(dry.end(), {"--dry-run", "-o", "yaml"});
  const Words command = {"sh", "-c", "echo \"$A\"; train"};
  CHECK(cli.Run(Submit(dry, command)) == 0);
  CHECK(LastSubmit(cli).dry_run());
  CHECK(cli.out().find("apiVersion: berth/v1\nkind: Job\nname: sweep-0\n") == 0);
  const TempFile file(cli.out());
  cli.script.Answer("SubmitJobs", Submitted("sweep-0"));
  CHECK(cli.Run({"submit", file.path()}) == 0);
  const v1::SubmitJobsRequest by_file = LastSubmit(cli);
  CHECK(cli.Run(Submit(options, command)) == 0);
  const v1::SubmitJobsRequest by_options = LastSubmit(cli);
  REQUIRE(by_file.jobs_size() == 2);
  for (int i = 0; i < 2; ++i) {
    INFO(by_file.jobs(i).DebugString() << by_options.jobs(i).DebugString());
    CHECK(google::protobuf::util::MessageDifferencer::Equals(by_file.jobs(i), by_options.jobs(i)));
  }
}

TEST_CASE("quick form: one string with blanks runs in a shell") {
  Cli cli;
  cli.script.Answer("SubmitJobs", Submitted("n"));
  CHECK(cli.Run(Submit({}, {"echo a | wc -c"})) == 0);
  const v1::SubmitJobsRequest request = LastSubmit(cli);
  const auto& words = request.jobs(0).spec().groups(0).command();
  CHECK(Words(words.begin(), words.end()) == Words{"/bin/sh", "-c", "echo a | wc -c"});
}

TEST_CASE("submit of a command without -- explains how to write it") {
  Cli cli;
  const auto error = [&](const Words& line) {
    CHECK(cli.Run(line) == 4);
    return cli.err();
  };
  const std::string server = cli.server.address();
  CHECK(error({"submit", "sleep", "1"}) ==
        "berth: sleep: no such file; to run a command, write: berth --server " + server +
            " submit -- sleep 1\n");
  CHECK(error({"submit", "--gpus", "1", "-n", "a", "python", "train.py", "--lr", "3", "-o",
               "out"}) == "berth: python: no such file; to run a command, write: berth --server " +
                              server + " submit --gpus 1 -n a -- python train.py --lr 3 -o out\n");
  CHECK(error({"submit", "sh", "-c", "echo 'a'"}) ==
        "berth: sh: no such file; to run a command, write: berth --server " + server +
            " submit -- sh -c 'echo '\\''a'\\'''\n");
  CHECK(error({"submit", "no-such.yaml"}) == "no-such.yaml: No such file or directory\n");
  CHECK(cli.script.Requests<v1::SubmitJobsRequest>("SubmitJobs").empty());
}

TEST_CASE("submit names an unknown option, also before a word that is not a file") {
  Cli cli;
  TempFile manifest("");
  for (const Words& line : {Words{"submit", "--ntasks", "4", "job.yaml"},
                            Words{"submit", "--partition", "gpu", manifest.path()},
                            Words{"submit", "--ntasks=4", "train"}, Words{"submit", "-N", "4"}}) {
    CAPTURE(line);
    CHECK(cli.Run(line) == 2);
    CHECK(cli.err().find(line[1]) != std::string::npos);
    CHECK(cli.err().find("no such file") == std::string::npos);
  }
  // Options after the first word of the command belong to the command.
  CHECK(cli.Run({"submit", "train", "--ntasks", "4"}) == 4);
}

}  // namespace
}  // namespace berth
