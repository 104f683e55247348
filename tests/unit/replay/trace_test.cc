// Reading workloads: which records are accepted, left out, or refused, and where.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "offline/replay/csv_workload.h"
#include "offline/replay/swf.h"
#include "offline/replay/trace_file.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth::replay {
namespace {

Workload Swf(const std::string& text, SwfOptions options = {}) {
  absl::StatusOr<Workload> workload = ReadSwf(text, "log.swf", options);
  INFO(workload.status().ToString());
  REQUIRE(workload.ok());
  return *std::move(workload);
}

std::string SwfError(const std::string& text) {
  return std::string(ReadSwf(text, "log.swf", {}).status().message());
}

constexpr const char* kLog =
    "; Version: 2.2\n"
    "; MaxProcs: 100\n"
    "  1  50 -1  100 4 -1 -1  8  60 -1 1 7 1 -1 3 -1 -1 -1\n"    // ran longer than requested
    "  2  20 -1  100 4 -1 -1 -1 600 -1 1 -1 1 -1 -1 -1 -1 -1\n"  // no requested processors
    "  3  30 -1   -1 4 -1 -1  4 600 -1 1 7 1 -1 3 -1 -1 -1\n"
    "  4  30 -1  100 4 -1 -1 101 600 -1 1 7 1 -1 3 -1 -1 -1\n"
    "  5  30 -1  100 -1 -1 -1 -1 600 -1 1 7 1 -1 3 -1 -1 -1\n"
    "  6  30 -1  100 4 -1 -1  4  -1 -1 1 7 1 -1 3 -1 -1 -1\n"
    "  7  -1 -1  100 4 -1 -1  4 600 -1 1 7 1 -1 3 -1 -1 -1\n"
    "\n";

TEST_CASE("CSV without a known column names the columns that it has") {
  const auto none = ReadCsv("pod,gpus\na,1\n", "pods.csv", {});
  CHECK(none.status().message() == "pods.csv: --columns must map its columns: it has pod, gpus");
}

TEST_CASE("SWF: jobs by submit time, sizes, what is left out and why") {
  const Workload workload = Swf(kLog);
  CHECK(workload.processors == 100);
  REQUIRE(workload.jobs.size() == 2);
  const TraceJob& first = workload.jobs[0];
  CHECK(first.name == "job-2");
  CHECK(first.submit == absl::Seconds(20));
  CHECK(first.tasks == 1);
  CHECK(first.shape.cpu_millis == 4000);
  CHECK(first.user.empty());
  const TraceJob& second = workload.jobs[1];
  CHECK(second.shape.cpu_millis == 8000);
  CHECK(second.run == absl::Seconds(60));
  CHECK(second.requested == absl::Seconds(60));
  CHECK(second.user == "user-7");
  CHECK(second.queue == "queue-3");
  CHECK(workload.left_out == std::map<std::string, int64_t>{{"larger than the machine", 1},
                                                            {"no processors", 1},
                                                            {"no requested time", 1},
                                                            {"no run time", 1},
                                                            {"no submit time", 1}});
}

TEST_CASE("SWF: without one_task each job is a gang of tasks of one core") {
  const Workload workload = Swf(kLog, {.one_task = false});
  CHECK(workload.jobs[1].tasks == 8);
  CHECK(workload.jobs[1].shape.cpu_millis == 1000);
  CHECK(Swf(kLog, {.processors = 200}).jobs.size() == 3);
  const Workload perfect = Swf(kLog, {.perfect_times = true});
  REQUIRE(perfect.jobs.size() == 3);
  CHECK(perfect.jobs[0].requested == absl::Seconds(100));
  CHECK(perfect.jobs[1].name == "job-6");
  CHECK(perfect.jobs[2].requested == absl::Seconds(60));  // it was stopped then
}

TEST_CASE("SWF: an invalid record is reported with its line") {
  CHECK(SwfError("; MaxProcs: 5\n1 2 3\n") == "log.swf:2: expected 18 fields, got 3");
  CHECK(SwfError("; MaxProcs: 5\n1 x -1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n") ==
        "log.swf:2: field 2 is not a number: \"x\"");
  CHECK(SwfError("; MaxProcs: many\n") == "log.swf:1: MaxProcs is not a number");
  CHECK(SwfError("1 2 -1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n") ==
        "log.swf:1: no MaxProcs before the first record: give --processors");
}

Workload Csv(const std::string& text, const std::string& columns) {
  const absl::StatusOr<ColumnMap> map = ParseColumns(columns);
  INFO(map.status().ToString());
  REQUIRE(map.ok());
  absl::StatusOr<Workload> workload = ReadCsv(text, "jobs.csv", *map);
  INFO(workload.status().ToString());
  REQUIRE(workload.ok());
  return *std::move(workload);
}

std::string CsvError(const std::string& text, const std::string& columns) {
  const absl::StatusOr<ColumnMap> map = ParseColumns(columns);
  if (!map.ok()) return std::string(map.status().message());
  return std::string(ReadCsv(text, "jobs.csv", *map).status().message());
}

TEST_CASE("CSV: columns are mapped to fields") {
  const Workload workload =
      Csv("timestamp,duration,num,who,model,mib,again\n"
          "2017-10-09 07:01:55,66.5,2,\"a \"\"b\"\", c\",V100|P100,1024,1\n"
          "2017-10-09 07:01:50,10,0,d,,,0\n"
          "2017-10-09 07:01:50,0,0,d,,,0\n",
          "submit=timestamp,run=duration,gpus=num,user=who,gpu_model=model,memory_mib=mib,"
          "preemptible=again");
  REQUIRE(workload.jobs.size() == 2);
  const TraceJob& small = workload.jobs[0];
  CHECK(small.name == "job-2");
  CHECK(small.requested == absl::InfiniteDuration());
  CHECK(small.shape.devices.empty());
  CHECK(!small.preemptible);
  const TraceJob& large = workload.jobs[1];
  CHECK(large.submit - small.submit == absl::Seconds(5));
  CHECK(large.run == absl::Milliseconds(66'500));
  CHECK(large.user == "a \"b\", c");
  CHECK(large.preemptible);
  CHECK(large.shape.memory_bytes == int64_t{1} << 30);
  REQUIRE(large.shape.devices.size() == 1);
  CHECK(large.shape.devices[0].kind == "gpu");
  CHECK(large.shape.devices[0].count == 2);
  CHECK(large.shape.devices[0].models == std::vector<std::string>{"P100", "V100"});
  CHECK(workload.left_out == std::map<std::string, int64_t>{{"no run time", 1}});
}

TEST_CASE("CSV: every field is read") {
  const std::map<std::string, std::string> values = {
      {"name", "\"a,b\""}, {"submit", "1"},    {"run", "5"},         {"requested", "7"},
      {"tasks", "3"},      {"cpu", "1.5"},     {"cpu_millis", "70"}, {"memory", "4Ki"},
      {"memory_mib", "2"}, {"gpus", "2"},      {"gpu_model", "X"},   {"user", "u"},
      {"queue", "q"},      {"priority", "-4"}, {"preemptible", "1"}};
  const auto with = [&](const std::vector<std::string>& fields) {
    std::string columns, header, row;
    for (const std::string& field : fields) {
      const char* comma = columns.empty() ? "" : ",";
      absl::StrAppend(&columns, comma, field, "=", field);
      absl::StrAppend(&header, comma, field);
      absl::StrAppend(&row, comma, values.at(field));
    }
    return Csv(header + "\n" + row + "\n", columns).jobs.at(0);
  };
  CHECK(with({"submit", "run", "name"}).name == "a,b");
  CHECK(with({"submit", "run"}).submit == absl::Seconds(1));
  CHECK(with({"submit", "run"}).run == absl::Seconds(5));
  CHECK(with({"submit", "run", "requested"}).requested == absl::Seconds(7));
  CHECK(with({"submit", "run", "tasks"}).tasks == 3);
  CHECK(with({"submit", "run", "cpu"}).shape.cpu_millis == 1500);
  CHECK(with({"submit", "run", "cpu_millis"}).shape.cpu_millis == 70);
  CHECK(with({"submit", "run", "memory"}).shape.memory_bytes == 4096);
  CHECK(with({"submit", "run", "memory_mib"}).shape.memory_bytes == 2 << 20);
  CHECK(with({"submit", "run", "gpus"}).shape.devices.at(0).models.empty());
  CHECK(with({"submit", "run", "gpus", "gpu_model"}).shape.devices.at(0).models.size() == 1);
  CHECK(with({"submit", "run", "user"}).user == "u");
  CHECK(with({"submit", "run", "queue"}).queue == "q");
  CHECK(with({"submit", "run", "priority"}).priority == -4);
  CHECK(with({"submit", "run", "preemptible"}).preemptible);
}

TEST_CASE("CSV: what cannot be read is reported with its line") {
  CHECK(CsvError("", "submit=a") == "no column for run");
  CHECK(CsvError("", "submit=a,run=b,gpu_models=c") ==
        "unknown field \"gpu_models\"; did you mean \"gpu_model\"?");
  CHECK(CsvError("", "submit=a,run=b,run=c") == "field run is given twice");
  CHECK(CsvError("", "submit=a,run=b,gpu=c") == "unknown field \"gpu\"; did you mean \"gpus\"?");
  CHECK(CsvError("", "submit") == "\"submit\" is not FIELD=COLUMN");
  CHECK(CsvError("", "submit=a,run=b") == "jobs.csv: the first line is missing");
  CHECK(CsvError("start,run\n", "submit=a,run=run") ==
        "jobs.csv:1: no column \"a\"; known: start, run");
  CHECK(CsvError("a,b\n1,x\n", "submit=a,run=b") == "jobs.csv:2: b: \"x\" is not a time");
  CHECK(CsvError("a,b,c\n1,1,1.5\n", "submit=a,run=b,gpus=c") ==
        "jobs.csv:2: c: \"1.5\" is not a whole number");
  CHECK(CsvError("a,b,c\n1,1,nan\n", "submit=a,run=b,gpus=c") ==
        "jobs.csv:2: c: \"nan\" is not a whole number");
  for (const std::string much : {"1e42", "inf", "-inf", "-1000000001"}) {
    CHECK(CsvError("a,b,c\n1,1," + much + "\n", "submit=a,run=b,gpus=c") ==
          "jobs.csv:2: c: \"" + much + "\" is above 1000000000");
  }
  CHECK(CsvError("a,b,c\n1,1,2\n", "submit=a,run=b,preemptible=c") ==
        "jobs.csv:2: c: \"2\" is neither 0 nor 1");
  CHECK(CsvError("a,b\n1,\"1\n", "submit=a,run=b").substr(0, 11) == "jobs.csv:2:");
  CHECK(CsvError("a,b,c\n1,1,999\n", "submit=a,run=b,gpus=c") == "jobs.csv:2: a task of 999 GPUs");
}

TEST_CASE("CSV: every row has as many fields as the first line, and lines are counted") {
  CHECK(CsvError("a,b\n1,1\n2\n", "submit=a,run=b") ==
        "jobs.csv:3: a row of 1 fields, but the first line names 2");
  CHECK(CsvError("a,b\n1,1,x\n", "submit=a,run=b") ==
        "jobs.csv:2: a row of 3 fields, but the first line names 2");
  // Empty lines are not rows. A quoted field may span lines.
  CHECK(CsvError("\na,b,c\r\n1,1,\"x\n\ny\"\r\n  \n1,x,3\n", "submit=a,run=b") ==
        "jobs.csv:7: b: \"x\" is not a time");
  CHECK(CsvError("a,b,c\n1,1,\"x\n\ny\"\n2,2,\"x", "submit=a,run=b").substr(0, 11) ==
        "jobs.csv:5:");
}

TEST_CASE("a log without jobs is an error with the reasons") {
  Workload none;
  CHECK(CheckAnyJob(none, "f").message() == "f: contains no jobs");
  none.left_out = {{"no run time", 2}, {"no such number of tasks", 1}};
  CHECK(CheckAnyJob(none, "f").message() ==
        "f: nothing to replay: all 3 records are left out (no run time: 2, no such number of "
        "tasks: 1)");
  none.jobs.emplace_back();
  CHECK(CheckAnyJob(none, "f").ok());
}

TEST_CASE("a load factor scales submit times") {
  const auto submits = [](double load) {
    Workload workload;
    for (const int64_t at : {0, 3, 101, 300})
      workload.jobs.emplace_back().submit = absl::Seconds(at);
    SetLoad(load, &workload);
    std::vector<int64_t> seconds;
    for (const TraceJob& job : workload.jobs) seconds.push_back(absl::ToInt64Seconds(job.submit));
    return seconds;
  };
  CHECK(submits(2) == std::vector<int64_t>{0, 1, 50, 150});
  CHECK(submits(0.5) == std::vector<int64_t>{0, 6, 202, 600});
}

TEST_CASE("files: plain, compressed, damaged, missing, too large") {
  const TempDirectory directory;
  const std::string plain = directory / "plain.csv";
  std::ofstream(plain) << "a,b\n1,2\n";
  CHECK(*ReadTraceFile(plain) == "a,b\n1,2\n");
  CHECK(ReadTraceFile(plain, 4).status().code() == absl::StatusCode::kResourceExhausted);
  CHECK(ReadTraceFile(directory / "none").status().code() == absl::StatusCode::kNotFound);
  const std::string packed = directory / "packed.gz";
  REQUIRE(std::system(("gzip -c " + plain + " > " + packed).c_str()) == 0);
  CHECK(*ReadTraceFile(packed) == "a,b\n1,2\n");
  const std::string cut = directory / "cut.gz";
  REQUIRE(std::system(("head -c 20 " + packed + " > " + cut).c_str()) == 0);
  CHECK(ReadTraceFile(cut).status().code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace berth::replay
