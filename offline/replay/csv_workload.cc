#include "offline/replay/csv_workload.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "offline/replay/csv_rows.h"
#include "support/nearest.h"
#include "support/quantity.h"

namespace berth::replay {
namespace {

using Row = CsvRow;

const std::vector<std::string>& Fields() {
  static const auto* fields = new std::vector<std::string>{"name",
                                                           "submit",
                                                           "run",
                                                           "requested",
                                                           "tasks",
                                                           "cpu",
                                                           "cpu_millis",
                                                           "memory",
                                                           "memory_mib",
                                                           "gpus",
                                                           "gpu_model",
                                                           "gpu_milli",
                                                           "user",
                                                           "queue",
                                                           "priority",
                                                           "preemptible",
                                                           "status",
                                                           "class",
                                                           "checkpoint_interval",
                                                           "checkpoint_cost",
                                                           "restart_cost"};
  return *fields;
}

class CsvReader {
 public:
  CsvReader(const std::string& file, const ColumnMap& columns) : file_(file), columns_(columns) {}

  absl::StatusOr<Workload> Read(absl::string_view text) {
    const auto take = [this](const Row& row, int64_t line) {
      if (columns_in_file_ == 0) return Header(row, line);
      const absl::Status status = Record(row);
      if (status.ok()) return status;
      return absl::InvalidArgumentError(absl::StrCat(file_, ":", line, ": ", status.message()));
    };
    if (auto status = ForEachRow(text, file_, take); !status.ok()) return status;
    if (columns_in_file_ == 0) {
      return absl::InvalidArgumentError(absl::StrCat(file_, ": the first line is missing"));
    }
    SortBySubmit(&workload_);
    return std::move(workload_);
  }

 private:
  absl::Status Header(const Row& row, int64_t line) {
    columns_in_file_ = row.size();
    if (columns_.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(file_,
                                                     ": --columns must map its columns: it has ",
                                                     absl::CHexEscape(absl::StrJoin(row, ", "))));
    }
    for (const auto& [field, column] : columns_) {
      const auto found = std::find(row.begin(), row.end(), column);
      if (found == row.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat(file_, ":", line, ": ", UnknownWord("no column", column, row)));
      }
      at_[field] = static_cast<size_t>(found - row.begin());
    }
    return absl::OkStatus();
  }

  // nullopt: the file has no such column, or the field is empty.
  std::optional<std::string> Text(const Row& row, const char* field) const {
    const auto at = at_.find(field);
    if (at == at_.end() || row[at->second].empty()) return std::nullopt;
    return row[at->second];
  }

  // Sets *to if there is a value. An error names the column.
  template <class T, class Parse>
  absl::Status Set(const Row& row, const char* field, Parse&& parse, T* to) const {
    const std::optional<std::string> text = Text(row, field);
    if (!text.has_value()) return absl::OkStatus();
    auto value = parse(*text);
    if (!value.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(columns_.at(field), ": ", value.status().message()));
    }
    *to = *std::move(value);
    return absl::OkStatus();
  }

  static absl::StatusOr<int64_t> Whole(absl::string_view text) {
    double value = 0;
    if (!absl::SimpleAtod(text, &value) || value != std::trunc(value)) {
      return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not a whole number"));
    }
    if (std::abs(value) > 1e9) {
      return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is above 1000000000"));
    }
    return static_cast<int64_t>(value);
  }

  static absl::StatusOr<TraceEnd> End(absl::string_view text) {
    const std::string word = absl::AsciiStrToLower(text);
    static const auto* words = new std::map<std::string, TraceEnd>{
        {"completed", TraceEnd::kCompleted}, {"succeeded", TraceEnd::kCompleted},
        {"pass", TraceEnd::kCompleted},      {"failed", TraceEnd::kFailed},
        {"timeout", TraceEnd::kFailed},      {"node_fail", TraceEnd::kFailed},
        {"cancelled", TraceEnd::kCancelled}, {"killed", TraceEnd::kCancelled}};
    const auto found = words->find(word);
    if (found != words->end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [name, end] : *words) known.push_back(name);
    return absl::InvalidArgumentError(UnknownWord("unknown status", word, known));
  }

  static absl::StatusOr<bool> Flag(absl::string_view text) {
    if (text == "0" || text == "1") return text == "1";
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is neither 0 nor 1"));
  }

  static absl::StatusOr<std::optional<Duration>> Span(absl::string_view text) {
    double seconds = 0;
    if (!absl::SimpleAtod(text, &seconds) || !(seconds >= 0 && seconds <= 1e9)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", text, "\" is not a number of seconds, 0 to 1000000000"));
    }
    return absl::Seconds(seconds);
  }

  absl::Status Costs(const Row& row, TraceCosts* costs) const {
    const absl::Status parts[] = {Set(row, "checkpoint_interval", Span, &costs->interval),
                                  Set(row, "checkpoint_cost", Span, &costs->checkpoint),
                                  Set(row, "restart_cost", Span, &costs->restart)};
    for (const absl::Status& status : parts) {
      if (!status.ok()) return status;
    }
    if (costs->interval.value_or(absl::Seconds(1)) >= absl::Seconds(1)) return absl::OkStatus();
    return absl::InvalidArgumentError("a checkpoint interval below 1 s");
  }

  absl::Status Shape(const Row& row, TaskShape* shape) const {
    int64_t mib = 0, gpus = 0, gpu_milli = kWhole;
    const absl::Status parts[] = {Set(row, "cpu", ParseCpuMillis, &shape->cpu_millis),
                                  Set(row, "cpu_millis", Whole, &shape->cpu_millis),
                                  Set(row, "memory", ParseBytes, &shape->memory_bytes),
                                  Set(row, "memory_mib", Whole, &mib),
                                  Set(row, "gpus", Whole, &gpus),
                                  Set(row, "gpu_milli", Whole, &gpu_milli)};
    for (const absl::Status& status : parts) {
      if (!status.ok()) return status;
    }
    if (mib > 0) shape->memory_bytes = mib << 20;
    if (gpus < 0 || shape->cpu_millis < 0 || mib < 0) {
      return absl::InvalidArgumentError("an amount is below 0");
    }
    if (gpus > static_cast<int64_t>(kMaxDevicesPerNode)) {
      return absl::InvalidArgumentError(absl::StrCat("a task of ", gpus, " GPUs"));
    }
    if (gpus == 0) return absl::OkStatus();
    if (gpu_milli < 1 || gpu_milli > kWhole || (gpu_milli < kWhole && gpus > 1)) {
      return absl::InvalidArgumentError("gpu_milli is 1..1000 of one GPU, and 1000 of several");
    }
    DeviceRequest request;
    request.kind = "gpu";
    request.count = static_cast<int32_t>(gpus);
    request.share = gpu_milli < kWhole ? static_cast<int32_t>(gpu_milli) : 0;
    if (const auto models = Text(row, "gpu_model"); models.has_value()) {
      request.models = absl::StrSplit(*models, '|', absl::SkipEmpty());
      std::sort(request.models.begin(), request.models.end());
    }
    shape->devices.push_back(std::move(request));
    return absl::OkStatus();
  }

  absl::Status Record(const Row& row) {
    if (row.size() != columns_in_file_) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a row of ", row.size(), " fields, but the first line names ", columns_in_file_));
    }
    TraceJob job;
    job.name = Text(row, "name").value_or(NameOfRecord(++records_));
    job.user = Text(row, "user").value_or("");
    job.queue = Text(row, "queue").value_or("");
    job.training = Text(row, "class").value_or("");
    int64_t tasks = 1, priority = 0;
    const absl::Status parts[] = {Set(row, "submit", ParseLogTime, &job.submit),
                                  Set(row, "run", ParseLogTime, &job.run),
                                  Set(row, "requested", ParseLogTime, &job.requested),
                                  Set(row, "tasks", Whole, &tasks),
                                  Set(row, "priority", Whole, &priority),
                                  Set(row, "preemptible", Flag, &job.preemptible),
                                  Set(row, "status", End, &job.ended),
                                  Shape(row, &job.shape),
                                  Costs(row, &job.costs)};
    for (const absl::Status& status : parts) {
      if (!status.ok()) return status;
    }
    const char* reason = nullptr;
    const bool timed = columns_.count("run") > 0;
    if (timed && job.run <= absl::ZeroDuration()) reason = "no run time";
    if (job.requested <= absl::ZeroDuration()) reason = "no requested time";
    if (tasks <= 0 || tasks > kMaxTasks) reason = "no such number of tasks";
    if (reason != nullptr) {
      ++workload_.left_out[reason];
      return absl::OkStatus();
    }
    CapAtRequestedTime(&job);
    job.tasks = static_cast<int32_t>(tasks);
    job.priority = static_cast<int32_t>(priority);
    workload_.jobs.push_back(std::move(job));
    return absl::OkStatus();
  }

  static constexpr int64_t kMaxTasks = 32'768;
  const std::string& file_;
  const ColumnMap& columns_;
  std::map<std::string, size_t> at_;  // by field
  size_t columns_in_file_ = 0;        // 0: the first line was not read yet
  int64_t records_ = 0;
  Workload workload_;
};

}  // namespace

absl::StatusOr<ColumnMap> ParseColumns(absl::string_view text, bool timed) {
  ColumnMap columns;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (pair.second.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("\"", part, "\" is not FIELD=COLUMN"));
    }
    if (std::find(Fields().begin(), Fields().end(), pair.first) == Fields().end()) {
      return absl::InvalidArgumentError(UnknownWord("unknown field", pair.first, Fields()));
    }
    if (!columns.insert(pair).second) {
      return absl::InvalidArgumentError(absl::StrCat("field ", pair.first, " is given twice"));
    }
  }
  for (const char* field : {"submit", "run"}) {
    if (timed && columns.count(field) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("no column for ", field));
    }
  }
  return columns;
}

absl::StatusOr<Workload> ReadCsv(absl::string_view text, const std::string& file,
                                 const ColumnMap& columns) {
  return CsvReader(file, columns).Read(text);
}

}  // namespace berth::replay
