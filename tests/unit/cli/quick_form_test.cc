// The quick form of submit: the jobs that options make, and errors of wrong options.
#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "clients/cli/quick_values.h"
#include "clients/session/array_range.h"
#include "clients/session/begin_time.h"
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

TEST_CASE("quick form: an array is one job with indexes") {
  Cli cli;
  cli.script.Answer("SubmitJobs", Submitted("sweep"));
  CHECK(cli.Run(Submit({"--name", "sweep", "--array", "0-99%10", "-e", "A=b"})) == 0);
  v1::SubmitJobsRequest request = LastSubmit(cli);
  REQUIRE(request.jobs_size() == 1);
  CHECK(request.jobs(0).name() == "sweep");
  CHECK(request.jobs(0).spec().array().size() == 100);
  CHECK(request.jobs(0).spec().array().parallelism() == 10);
  CHECK(request.jobs(0).spec().groups(0).env_size() == 1);  // the server adds the index
  CHECK(cli.err().empty());
  CHECK(cli.Run(Submit({"--array", "1-5:2"})) == 0);  // a name is not needed
  request = LastSubmit(cli);
  CHECK(request.jobs(0).spec().array().indexes() == "1-5:2");
  CHECK(request.jobs(0).spec().array().size() == 0);
  CHECK(cli.Run(Submit({"--array", "1000"})) == 0);
  CHECK(LastSubmit(cli).jobs(0).spec().array().indexes() == "1000");
  CHECK(cli.err() ==
        "berth: warning: --array 1000 is the one index 1000, as in Slurm; for 1000 jobs, write "
        "--array 0-999\n");
}

TEST_CASE("quick form: indexes of arrays") {
  const auto text = [](const char* array) {
    const absl::StatusOr<v1::Array> parsed = ParseArray(array);
    return parsed.ok() ? parsed->ShortDebugString() : std::string(parsed.status().message());
  };
  CHECK(text("0-3") == "size: 4");
  CHECK(text("0") == "size: 1");
  CHECK(text("7") == "indexes: \"7\"");
  CHECK(text("5,1,3-4") == "indexes: \"1,3-4,5\"");
  CHECK(text("0-100:50") == "indexes: \"0-100:50\"");
  CHECK(text("0-999999") == "size: 1000000");
  CHECK(text("0-9%4") == "size: 10 parallelism: 4");
  CHECK(text("3,5%1") == "parallelism: 1 indexes: \"3,5\"");
  CHECK(text("0-9%") == "expected a number of jobs after %, such as 0-99%10, got \"0-9%\"");
  for (const char* bad : {"", "-1", "a", "3-1", "1-", "0-9:0", "1000000", "1,,2", "5:2", "1 2",
                          "0-9%0", "0-9%x", "0-9%1%2", "%3"}) {
    INFO(bad);
    CHECK(absl::IsInvalidArgument(ParseArray(bad).status()));
  }
}

TEST_CASE("quick form: topology by name or number") {
  const auto text = [](const char* topology) {
    const absl::StatusOr<v1::TopologyConstraint> parsed = ParseTopology(topology);
    return parsed.ok() ? parsed->ShortDebugString() : std::string(parsed.status().message());
  };
  CHECK(text("rack") == "mode: HARD highest_tier_name: \"rack\"");
  CHECK(text("2") == "mode: HARD highest_tier: 2");
  CHECK(text("hard:rack") == "mode: HARD highest_tier_name: \"rack\"");
  CHECK(text("soft:2") == "mode: SOFT highest_tier: 2");
  CHECK(text("firm:rack") ==
        "expected a tier such as rack or 2, or MODE:TIER such as soft:rack, got \"firm:rack\"");
  for (const char* bad : {"hard:", ":rack", ":"}) {
    INFO(bad);
    CHECK(absl::IsInvalidArgument(ParseTopology(bad).status()));
  }
}

TEST_CASE("quick form: volumes as of docker, and in memory") {
  const auto text = [](const absl::StatusOr<v1::Volume>& parsed) {
    return parsed.ok() ? parsed->ShortDebugString() : std::string(parsed.status().message());
  };
  CHECK(text(ParseVolume("/data/sets:/data:ro")) ==
        "path: \"/data\" read_only: true host_path: \"/data/sets\"");
  CHECK(text(ParseVolume("/data:/mnt:rw")) == "path: \"/mnt\" host_path: \"/data\"");
  CHECK(text(ParseVolume("/data")) == "path: \"/data\" host_path: \"/data\"");
  CHECK(text(ParseVolume("data:/data")) ==
        "expected HOST:PATH[:ro], absolute paths such as /data:/data:ro, got \"data:/data\"");
  for (const char* bad : {"", "/data:", "/data:ro", "/a:/b:z", "/a:/b:ro:rw", "/a:b"}) {
    INFO(bad);
    CHECK(absl::IsInvalidArgument(ParseVolume(bad).status()));
  }
  CHECK(text(ParseTmpfs("/tmp")) == "path: \"/tmp\" tmpfs { }");
  CHECK(text(ParseTmpfs("/tmp:16Gi")) == "path: \"/tmp\" tmpfs { size_bytes: 17179869184 }");
  CHECK(text(ParseTmpfs("/tmp:size=64m")) == "path: \"/tmp\" tmpfs { size_bytes: 67108864 }");
  for (const char* bad : {"", "tmp", "/tmp:", "/tmp:lots", "/tmp:0", "/tmp:size="}) {
    INFO(bad);
    CHECK(absl::IsInvalidArgument(ParseTmpfs(bad).status()));
  }
}

TEST_CASE("quick form: strategy, priority class and volumes in the job") {
  Cli cli;
  cli.script.Answer("SubmitJobs", Submitted("n"));
  CHECK(
      cli.Run(Submit({"--strategy", "spread", "--priority-class", "priority-class/high", "--volume",
                      "/data:/data:ro", "-v", "/models:/models", "--tmpfs", "/tmp:1Gi"})) == 0);
  const v1::JobSpec spec = LastSubmit(cli).jobs(0).spec();
  CHECK(spec.strategy() == v1::SPREAD);
  CHECK(spec.priority_class() == "high");
  REQUIRE(spec.groups(0).volumes_size() == 3);
  CHECK(spec.groups(0).volumes(0).read_only());
  CHECK(spec.groups(0).volumes(1).host_path() == "/models");
  CHECK(spec.groups(0).volumes(2).tmpfs().size_bytes() == 1 << 30);
  CHECK(cli.Run(Submit({"--strategy", "random"})) == 2);
  Cli other;
  other.script.Answer("SubmitJobs",
                      ViolationsError(absl::StatusCode::kInvalidArgument,
                                      {{"jobs[0].spec.groups[0].volumes[1].host_path", "no"},
                                       {"jobs[0].spec.groups[0].volumes[2].path", "taken"},
                                       {"jobs[0].spec.priority_class", "none"},
                                       {"jobs[0].spec.array.parallelism", "too many"}}));
  CHECK(other.Run(Submit({"-v", "/a", "-v", "/b", "--tmpfs", "/c", "--priority-class", "x",
                          "--array", "0-1"})) == 4);
  CHECK(other.err() ==
        "berth: --volume: no\nberth: --tmpfs: taken\nberth: --priority-class: none\n"
        "berth: --array: too many\n");
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
  CHECK(error({"--topology", "firm:rack"}).find("berth: --topology: expected a tier") == 0);
  CHECK(error({"--array", "0-9%x"}).find("berth: --array: expected a number of jobs") == 0);
  CHECK(error({"--volume", "data"}).find("berth: --volume: expected HOST:PATH") == 0);
  CHECK(error({"--tmpfs", "/tmp:x"}).find("berth: --tmpfs: expected PATH") == 0);
  CHECK(error({"--node-selector", "zone"}).find("berth: --node-selector: expected KEY=VALUE") == 0);
  CHECK(cli.script.Requests<v1::SubmitJobsRequest>("SubmitJobs").empty());

  cli.script.Answer(
      "SubmitJobs",
      ViolationsError(absl::StatusCode::kInvalidArgument,
                      {{"jobs[0].spec.queue", "no such queue"},
                       {"jobs[0].spec.start_after", "too late"},
                       {"jobs[0].spec.run_as", "not permitted"},
                       {"jobs[0].spec.topology.highest_tier_name", "no such tier"},
                       {"jobs[0].spec.groups[0].image", "wrong"},
                       {"jobs[0].spec.groups[0].node_selector.match_labels[\"a\"]", "wrong"},
                       {"jobs[0].spec.groups[0].resources.devices[0].count", "too many"},
                       {"jobs[0].spec.array.size", "too large"}}));
  CHECK(cli.Run(Submit({"--gpus", "8", "--name", "a", "--array", "0-1"})) == 4);
  CHECK(cli.err() ==
        "berth: --queue: no such queue\nberth: --begin: too late\nberth: --run-as: not permitted\n"
        "berth: --topology: no such tier\nberth: --image: wrong\nberth: --node-selector: wrong\n"
        "berth: --gpus: too many\nberth: --array: too large\n");
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
                         "--volume",
                         "/data:/data:ro",
                         "--tmpfs",
                         "/tmp:1Gi",
                         "--priority-class",
                         "high",
                         "--preemptible=false",
                         "--node-selector",
                         "zone=b"};
  Words dry = options;
  dry.insert(dry.end(), {"--dry-run", "-o", "yaml"});
  const Words command = {"sh", "-c", "echo \"$A\"; train"};
  CHECK(cli.Run(Submit(dry, command)) == 0);
  CHECK(LastSubmit(cli).dry_run());
  CHECK(cli.out().find("apiVersion: berth/v1\nkind: Job\nname: sweep\n") == 0);
  const TempFile file(cli.out());
  cli.script.Answer("SubmitJobs", Submitted("sweep"));
  CHECK(cli.Run({"submit", file.path()}) == 0);
  const v1::SubmitJobsRequest by_file = LastSubmit(cli);
  CHECK(cli.Run(Submit(options, command)) == 0);
  const v1::SubmitJobsRequest by_options = LastSubmit(cli);
  REQUIRE(by_file.jobs_size() == 1);
  INFO(by_file.jobs(0).DebugString() << by_options.jobs(0).DebugString());
  CHECK(google::protobuf::util::MessageDifferencer::Equals(by_file.jobs(0), by_options.jobs(0)));
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
    CHECK(cli.err() == "berth: unknown option " + line[1].substr(0, line[1].find('=')) +
                           "; see berth submit --help\n");
    CHECK(cli.err().find("no such file") == std::string::npos);
  }
  for (const auto& [given, meant] :
       {std::pair("--replica", "--replicas"), std::pair("--wall-time", "--walltime"),
        std::pair("--topolgy", "--topology"), std::pair("--serber", "--server")}) {
    CAPTURE(given);
    CHECK(cli.Run({"submit", given, "8", "--", "train"}) == 2);
    CHECK(cli.err() ==
          absl::StrCat("berth: unknown option ", given, "; did you mean ", meant, "?\n"));
  }
  CHECK(cli.Run({"job", "list", "--quue=a"}) == 2);
  CHECK(cli.err() == "berth: unknown option --quue; did you mean --queue?\n");
  // Options after the first word of the command belong to the command.
  CHECK(cli.Run({"submit", "train", "--ntasks", "4"}) == 4);
}

}  // namespace
}  // namespace berth
