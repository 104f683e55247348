#include "clients/agent/log_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "clients/agent/supervisor/log_writer.h"
#include "clients/agent/task_containers.h"
#include "clients/agent/task_files.h"

namespace berth {
namespace {

constexpr int64_t kReadBytes = 64 << 10;

std::string ReadAt(const std::string& path, int64_t offset, int64_t length) {
  std::string data(static_cast<size_t>(std::max<int64_t>(length, 0)), '\0');
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return "";
  const ssize_t n = pread(fd, data.data(), data.size(), offset);
  close(fd);
  data.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return data;
}

// The segments NAME.POSITION of one directory. Positions count units of `unit` bytes.
class Segments {
 public:
  Segments(std::string directory, std::string name, int64_t unit)
      : directory_(std::move(directory)), name_(std::move(name)), unit_(unit) {}

  bool Empty() const { return List().empty(); }
  int64_t First() const {
    const std::vector<int64_t> positions = List();
    return positions.empty() ? 0 : positions.front();
  }
  int64_t End() const {
    const std::vector<int64_t> positions = List();
    return positions.empty() ? 0 : positions.back() + Size(positions.back());
  }
  // Up to `units` from `*position`, within one segment; advances *position past segments removed by
  // rotation. Empty at the end.
  std::string Read(int64_t* position, int64_t units) const {
    for (const int64_t start : List()) {
      *position = std::max(*position, start);
      const int64_t left = start + Size(start) - *position;
      if (left <= 0) continue;
      return ReadAt(Path(start), (*position - start) * unit_, std::min(units, left) * unit_);
    }
    return "";
  }

 private:
  std::string Path(int64_t position) const {
    return absl::StrCat(directory_, "/", name_, ".", position);
  }
  int64_t Size(int64_t position) const {
    struct stat info;
    return lstat(Path(position).c_str(), &info) == 0 ? info.st_size / unit_ : 0;
  }
  std::vector<int64_t> List() const {
    std::vector<int64_t> positions;
    DIR* directory = opendir(directory_.c_str());
    if (directory == nullptr) return positions;
    const std::string prefix = name_ + ".";
    while (const dirent* entry = readdir(directory)) {
      absl::string_view file = entry->d_name;
      int64_t position = 0;
      if (absl::ConsumePrefix(&file, prefix) && absl::SimpleAtoi(file, &position))
        positions.push_back(position);
    }
    closedir(directory);
    std::sort(positions.begin(), positions.end());
    return positions;
  }

  const std::string directory_;
  const std::string name_;
  const int64_t unit_;
};

// A contiguous run of one stream's output.
struct Run {
  int stream = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

// Bytes [*begin, end) of a stream; advances *begin past segments removed by rotation.
std::string ReadRange(const Segments& segments, int64_t* begin, int64_t end) {
  std::string data;
  while (*begin + static_cast<int64_t>(data.size()) < end) {
    const int64_t expected = *begin + static_cast<int64_t>(data.size());
    int64_t at = expected;
    const std::string part = segments.Read(&at, end - expected);
    if (part.empty() || at >= end) break;
    if (at != expected) {
      data.clear();
      *begin = at;
    }
    data += part;
  }
  return data;
}

// Walks back from run.end until *lines line ends are passed; returns where their text begins. Sets
// *lines to the number still missing, 0 = found. *at_end: a line end as the very last byte ends the
// last line and does not start one.
int64_t WalkBack(const Segments& segments, const Run& run, int64_t* lines, bool* at_end) {
  for (int64_t end = run.end; end > run.begin;) {
    const int64_t wanted = std::max(run.begin, end - kReadBytes);
    int64_t begin = wanted;
    const std::string block = ReadRange(segments, &begin, end);
    for (size_t i = block.size(); i-- > 0;) {
      if (block[i] == '\n' && !*at_end && --*lines == 0) return begin + static_cast<int64_t>(i) + 1;
      *at_end = false;
    }
    if (begin != wanted || block.empty()) return begin;
    end = begin;
  }
  return run.begin;
}

uint64_t LittleEndian(const std::string& bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = sizeof value; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

// Returns when a stream's output was written, for a reader that moves forward.
class Times {
 public:
  Times(const std::string& directory, const std::string& stream)
      : records_(directory, "times." + stream, kTimeRecordBytes) {}

  struct Step {
    std::optional<int64_t> unix_ms;  // of the requested byte; none if no record of it remains
    int64_t end = INT64_MAX;         // the first byte known to have another time
  };
  Step At(int64_t offset) {
    if (next_ == 0 || offset < offset_ || next_ < records_.First()) Search(offset);
    Step step;
    for (std::optional<Record> record = Get(next_); record.has_value(); record = Get(next_)) {
      if (record->offset > offset) {
        step.end = record->offset;
        break;
      }
      time_ = record->unix_ms;
      ++next_;
    }
    offset_ = offset;
    step.unix_ms = time_;
    return step;
  }

 private:
  struct Record {
    int64_t offset;
    int64_t unix_ms;
  };
  std::optional<Record> Get(int64_t at) const {
    int64_t position = at;
    const std::string bytes = records_.Read(&position, 1);
    if (bytes.size() < kTimeRecordBytes || position != at) return std::nullopt;
    return Record{static_cast<int64_t>(LittleEndian(bytes, 0)),
                  static_cast<int64_t>(LittleEndian(bytes, sizeof(uint64_t)))};
  }
  // Makes the last record at or before `offset`, or else the first remaining one, the next record.
  void Search(int64_t offset) {
    int64_t first = records_.First();
    for (int64_t end = records_.End(); end - first > 1;) {
      const int64_t middle = first + (end - first) / 2;
      const std::optional<Record> record = Get(middle);
      (record.has_value() && record->offset > offset ? end : first) = middle;
    }
    next_ = first;
    time_.reset();
  }

  Segments records_;
  int64_t next_ = 0;  // the record after that of time_
  int64_t offset_ = 0;
  std::optional<int64_t> time_;
};

// Reads one stream, or both in the order of the order records.
class FileCursor final : public LogCursor {
 public:
  FileCursor(const std::string& directory, v1::LogStream stream, bool times)
      : streams_{{directory, "stdout", 1}, {directory, "stderr", 1}},
        order_(directory, "order", kOrderRecordBytes),
        both_(stream == v1::LOG_STREAM_UNSPECIFIED),
        only_(stream == v1::STDERR ? 1 : 0) {
    if (!times) return;
    times_.emplace_back(directory, "stdout");
    times_.emplace_back(directory, "stderr");
  }

  // Runs before `position` are skipped when they are reached.
  void SeekTo(const v1::LogPosition& position) {
    offsets_[0] = std::max<int64_t>(position.stdout_bytes(), 0);
    offsets_[1] = std::max<int64_t>(position.stderr_bytes(), 0);
  }

  void SeekTail(int64_t lines) {
    std::vector<Run> runs =
        both_ ? AllRuns()
              : std::vector<Run>{{only_, streams_[only_].First(), streams_[only_].End()}};
    bool at_end = true;
    for (size_t i = runs.size(); i-- > 0;) {
      const int64_t at = WalkBack(streams_[runs[i].stream], runs[i], &lines, &at_end);
      if (lines > 0) continue;
      for (size_t before = 0; before < i; ++before)
        offsets_[runs[before].stream] = runs[before].end;
      offsets_[runs[i].stream] = at;
      record_ = first_record_ + static_cast<int64_t>(i);
      return;
    }
  }

  absl::StatusOr<Piece> Read(size_t max_bytes) override {
    const int64_t max = static_cast<int64_t>(max_bytes);
    if (!both_) return ReadStream(only_, max);
    for (;;) {
      // Checked first: if another run follows, this run's end is final when it is read.
      const bool another = order_.End() > record_ + 1;
      const std::string record = order_.Read(&record_, 1);
      if (record.size() < kOrderRecordBytes) return Piece{};
      const uint64_t value = LittleEndian(record, 0);
      const int stream = static_cast<int>(value & 1);
      const int64_t end = static_cast<int64_t>(value >> 1);
      if (offsets_[stream] < end) {
        Piece piece = ReadStream(stream, std::min(max, end - offsets_[stream]));
        if (!piece.data.empty()) return piece;
        offsets_[stream] = end;  // removed by rotation
      }
      if (!another) return Piece{};
      ++record_;
    }
  }

  v1::LogPosition Next() const override {
    v1::LogPosition position;
    position.set_stdout_bytes(offsets_[0]);
    position.set_stderr_bytes(offsets_[1]);
    return position;
  }

 private:
  Piece ReadStream(int stream, int64_t max) {
    Piece piece;
    piece.stream = stream == 1 ? v1::STDERR : v1::STDOUT;
    piece.data = streams_[stream].Read(&offsets_[stream], max);
    if (!times_.empty() && !piece.data.empty()) {
      // After the read: the records of everything that was read exist.
      const Times::Step step = times_[static_cast<size_t>(stream)].At(offsets_[stream]);
      piece.unix_ms = step.unix_ms;
      const int64_t same = step.end - offsets_[stream];
      if (same < static_cast<int64_t>(piece.data.size()))
        piece.data.resize(static_cast<size_t>(same));
    }
    offsets_[stream] += static_cast<int64_t>(piece.data.size());
    return piece;
  }

  std::vector<Run> AllRuns() {
    std::vector<Run> runs;
    int64_t ends[2] = {streams_[0].First(), streams_[1].First()};
    int64_t at = order_.First();
    first_record_ = at;
    for (;;) {
      const std::string records = order_.Read(&at, kReadBytes / kOrderRecordBytes);
      if (records.empty()) return runs;
      for (size_t i = 0; i + kOrderRecordBytes <= records.size(); i += kOrderRecordBytes) {
        const uint64_t value = LittleEndian(records, i);
        const int stream = static_cast<int>(value & 1);
        const int64_t end = std::max(static_cast<int64_t>(value >> 1), ends[stream]);
        runs.push_back({stream, ends[stream], end});
        ends[stream] = end;
        ++at;
      }
    }
  }

  Segments streams_[2];
  Segments order_;
  std::vector<Times> times_;  // by stream; empty: not requested
  const bool both_;
  const int only_;
  int64_t offsets_[2] = {0, 0};
  int64_t record_ = 0;
  int64_t first_record_ = 0;
};

// Whether the task has ended and its output was removed to free space: kept_output.h.
bool WasTrimmed(const std::string& directory) {
  const SupervisorStatus status = ReadStatus(directory);
  const bool had = status.has_output && status.phase != SupervisorStatus::kRunning;
  return had && Segments(directory, "order", kOrderRecordBytes).Empty();
}

}  // namespace

LogFiles::LogFiles(std::string tasks_directory) : tasks_directory_(std::move(tasks_directory)) {}

absl::StatusOr<std::unique_ptr<LogCursor>> LogFiles::Open(const v1::ReadLog& request) {
  const auto named = NamedDirectory(
      absl::StrCat(tasks_directory_, "/", ToString(ToTaskId(request.key()))), request.container());
  if (!named.ok()) return named.status();
  const std::string& directory = *named;
  struct stat info;
  if (!request.container().empty() && lstat(TaskDirectoryOf(directory).c_str(), &info) == 0 &&
      lstat(directory.c_str(), &info) != 0) {
    return absl::NotFoundError(
        absl::StrCat("the task has no container \"", request.container(), "\""));
  }
  if (lstat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || WasTrimmed(directory)) {
    return absl::NotFoundError("this node has no output of the task (it may have been removed)");
  }
  auto cursor = std::make_unique<FileCursor>(directory, request.stream(), request.times());
  cursor->SeekTo(request.from());
  if (request.tail_lines() > 0) cursor->SeekTail(request.tail_lines());
  return cursor;
}

}  // namespace berth
