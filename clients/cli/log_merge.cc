#include "clients/cli/log_merge.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "clients/cli/human.h"

namespace berth {
namespace {

// Joins pieces to lines. The two streams of a task do not break the lines of each other.
class LineSplitter {
 public:
  using Time = std::optional<absl::Time>;
  using Push = absl::FunctionRef<bool(Time, std::string)>;

  // Returns false if `push` did.
  bool Take(const v1::ReadLogsResponse& piece, Push push) {
    Part& part = parts_[piece.stream()];
    const std::string& data = piece.data();
    const Time time = piece.has_time() ? Time(TimeFrom(piece.time())) : std::nullopt;
    for (size_t at = 0; at < data.size();) {
      if (part.text.empty()) part.time = time;
      const size_t end = data.find('\n', at);
      const size_t stop = end == std::string::npos ? data.size() : end;
      part.text.append(data, at, stop - at);
      at = stop + 1;
      if (end == std::string::npos && part.text.size() < kMaxLogLineBytes) break;
      if (!push(part.time, std::exchange(part.text, ""))) return false;
    }
    return true;
  }
  // Pushes the text without a newline at the end.
  void End(Push push) {
    for (auto& [stream, part] : parts_) {
      if (!part.text.empty()) push(part.time, std::exchange(part.text, ""));
    }
  }

 private:
  struct Part {
    Time time;
    std::string text;
  };
  std::map<v1::LogStream, Part> parts_;  // of incomplete lines
};

// Lines that were read but not printed yet, by task. Thread-safe.
class LineQueue {
 public:
  explicit LineQueue(size_t tasks) : tasks_(tasks) {}

  // Waits while the buffer of the task is full. Returns false once the queue is closed.
  bool Push(LogLine line) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    Task& task = tasks_[line.task];
    const auto may = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return closed_ || task.bytes < kMaxBufferedLogBytes;
    };
    mutex_.Await(absl::Condition(&may));
    if (closed_) return false;
    task.bytes += line.text.size() + 1;
    task.lines.push_back(std::move(line));
    return true;
  }
  void Done(size_t task) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    tasks_[task].done = true;
  }
  // Waits for the next line to print. Returns false when there are no more.
  bool Pop(LogLine* line) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      next_ = NextTask();
      return next_ != kWait;
    };
    mutex_.Await(absl::Condition(&ready));
    if (next_ == kEnd) return false;
    Task& task = tasks_[static_cast<size_t>(next_)];
    *line = std::move(task.lines.front());
    task.lines.pop_front();
    task.bytes -= line->text.size() + 1;
    last_ = static_cast<size_t>(next_);
    return true;
  }
  void Close() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }

 private:
  struct Task {
    std::deque<LogLine> lines;
    size_t bytes = 0;
    bool done = false;
  };
  static constexpr int64_t kWait = -1, kEnd = -2;

  // The next task with lines after the last one.
  int64_t NextTask() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    bool open = false;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      const size_t at = (last_ + 1 + i) % tasks_.size();
      if (!tasks_[at].lines.empty()) return static_cast<int64_t>(at);
      open |= !tasks_[at].done;
    }
    return open ? kWait : kEnd;
  }

  absl::Mutex mutex_;
  std::vector<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  size_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_ ABSL_GUARDED_BY(mutex_) = kWait;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

// Reads the log of one task, in lines, on its own thread.
class TaskReader {
 public:
  TaskReader(const ClientOptions& options, const ClientEnvironment& environment, uint64_t seed,
             const v1::ReadLogsRequest& request, size_t task, LineQueue* queue)
      : random_(seed),
        environment_{environment.clock, environment.sleeper, &random_},
        request_(request),
        task_(task),
        queue_(queue) {
    thread_ = std::thread([this, options] { Run(options); });
  }
  ~TaskReader() { Join().IgnoreError(); }
  TaskReader(const TaskReader&) = delete;
  TaskReader& operator=(const TaskReader&) = delete;

  void Stop() { stop_.Stop(); }
  absl::Status Join() {
    if (thread_.joinable()) thread_.join();
    return status_;
  }

 private:
  void Run(const ClientOptions& options) {
    const auto client = Client::Connect(options, environment_);
    status_ = client.ok()
                  ? (*client)->ReadLogs(
                        request_, [this](const v1::ReadLogsResponse& piece) { return Take(piece); },
                        &stop_)
                  : client.status();
    splitter_.End(push_);
    queue_->Done(task_);
  }
  bool Take(const v1::ReadLogsResponse& piece) { return splitter_.Take(piece, push_); }

  Random random_;
  const ClientEnvironment environment_;
  const v1::ReadLogsRequest request_;
  const size_t task_;
  LineQueue* const queue_;
  LineSplitter splitter_;
  const std::function<bool(LineSplitter::Time, std::string)> push_ = [this](LineSplitter::Time time,
                                                                            std::string text) {
    return queue_->Push({task_, time, std::move(text)});
  };
  StreamStop stop_;
  absl::Status status_;
  std::thread thread_;
};

using Requests = std::vector<v1::ReadLogsRequest>;
using PrintLine = std::function<bool(const LogLine&)>;

std::vector<absl::Status> FollowTogether(Session& session, const Requests& requests,
                                         const PrintLine& print) {
  LineQueue queue(requests.size());
  std::vector<std::unique_ptr<TaskReader>> readers;
  const ClientEnvironment& environment = session.io().environment;
  for (size_t i = 0; i < requests.size(); ++i) {
    readers.push_back(std::make_unique<TaskReader>(
        session.options.client, environment, environment.random->Next(), requests[i], i, &queue));
  }
  bool wanted = true;
  for (LogLine line; wanted && queue.Pop(&line);) wanted = print(line);
  if (!wanted) {
    queue.Close();
    for (const auto& reader : readers) reader->Stop();
  }
  std::vector<absl::Status> statuses;
  for (const auto& reader : readers) statuses.push_back(reader->Join());
  return statuses;
}

std::vector<absl::Status> ReadInTurn(Session& session, const Requests& requests,
                                     const PrintLine& print) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return {client.status()};
  std::vector<absl::Status> statuses;
  bool wanted = true;
  for (size_t i = 0; i < requests.size() && wanted; ++i) {
    LineSplitter splitter;
    const auto push = [&](LineSplitter::Time time, std::string text) {
      wanted = print({i, time, std::move(text)});
      return wanted;
    };
    statuses.push_back((*client)->ReadLogs(requests[i], [&](const v1::ReadLogsResponse& piece) {
      return splitter.Take(piece, push);
    }));
    if (wanted) splitter.End(push);
  }
  return statuses;
}

}  // namespace

std::vector<absl::Status> ReadLogsTogether(Session& session, const Requests& requests,
                                           const PrintLine& print) {
  if (requests.empty()) return {};
  return requests[0].follow() ? FollowTogether(session, requests, print)
                              : ReadInTurn(session, requests, print);
}

}  // namespace berth
