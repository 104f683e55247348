// Fakes of everything that the agent's logic calls. They record calls as text, and the test sets
// their answers.
#ifndef BERTH_TESTS_UNIT_AGENT_FAKES_H_
#define BERTH_TESTS_UNIT_AGENT_FAKES_H_

#include <stdlib.h>

#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/agent/interfaces.h"
#include "clients/agent/journal_state.h"

namespace berth::testing {

class FakeLink final : public ServerLink {
 public:
  void Connect() override {
    ++connects;
    connected = true;
  }
  void Send(const v1::AgentMessage& message) override {
    if (connected) sent.push_back(message);
  }
  void Disconnect() override { connected = false; }
  size_t QueuedBytes() const override { return queued_bytes; }

  // Reports sent since the last call.
  std::vector<v1::TaskReport> TakeReports() {
    std::vector<v1::TaskReport> reports;
    for (const v1::AgentMessage& message : sent) {
      if (message.has_report()) reports.push_back(message.report());
    }
    sent.clear();
    return reports;
  }

  int connects = 0;
  bool connected = false;
  size_t queued_bytes = 0;
  std::vector<v1::AgentMessage> sent;
};

class FakeJournal final : public Journal {
 public:
  absl::Status Append(const std::vector<agent::v1::JournalRecord>& records) override {
    ++appends;
    if (!next_error.ok()) return next_error;
    for (const auto& record : later) state.Apply(record);
    later.clear();
    for (const auto& record : records) state.Apply(record);
    return absl::OkStatus();
  }
  void AppendLater(agent::v1::JournalRecord record) override { later.push_back(record); }

  JournalState state;  // what a restart loads
  std::vector<agent::v1::JournalRecord> later;
  absl::Status next_error;
  int appends = 0;
};

class FakeRunner final : public TaskRunner {
 public:
  explicit FakeRunner(FakeJournal* j = nullptr) : journal(j) {}
  void Prepare(const TaskId& id, const v1::TaskLaunch&, std::optional<int> port) override {
    calls.push_back(absl::StrCat("prepare ", ToString(id), port.has_value() ? " port" : "",
                                 port.value_or(0) > 0 ? absl::StrCat(" ", *port) : ""));
  }
  void Signal(const TaskId& id, const std::string& signal) override {
    calls.push_back(absl::StrCat("signal ", ToString(id), " ", signal));
  }
  void Freeze(const TaskId& id, int64_t request, bool saves_devices) override {
    calls.push_back(
        absl::StrCat("freeze ", ToString(id), " ", request, saves_devices ? " save" : ""));
  }
  void Discard(const TaskId& id) override { calls.push_back("discard " + ToString(id)); }
  void Start(const TaskId& id, const v1::TaskLaunch& launch, const v1::Start& start) override {
    calls.push_back("start " + ToString(id));
    last_launch = launch;
    last_start = start;
    if (journal != nullptr)
      journaled_before_start =
          journal->state.tasks.contains(id) &&
          journal->state.tasks.at(id).phase() == agent::v1::TaskRecord::STARTING;
  }
  void Kill(const TaskId& id, const std::string& signal, absl::Duration grace,
            v1::TaskReport::Cause cause) override {
    calls.push_back(absl::StrCat("kill ", ToString(id), " ", signal, " ",
                                 absl::FormatDuration(grace), " ",
                                 v1::TaskReport::Cause_Name(cause)));
  }
  void Adopt(const agent::v1::TaskRecord& record) override {
    calls.push_back("adopt " + ToString(ToTaskId(record.key())));
  }
  void Remove(const TaskId& id) override { calls.push_back("remove " + ToString(id)); }
  bool SetLease(absl::Duration soon, absl::Duration deadline) override {
    if (lease_fails) return false;
    soon_lease = soon;
    lease = deadline;
    return true;
  }

  std::vector<std::string> Take() { return std::exchange(calls, {}); }

  FakeJournal* journal;
  std::vector<std::string> calls;
  v1::TaskLaunch last_launch;
  v1::Start last_start;
  bool journaled_before_start = false;
  absl::Duration lease, soon_lease;
  bool lease_fails = false;
};

// Output of one task, in pieces that the test gives.
class FakeLogs final : public LogSource {
 public:
  absl::StatusOr<std::unique_ptr<LogCursor>> Open(const v1::ReadLog& request) override {
    if (missing) return absl::NotFoundError("no output");
    class Cursor final : public LogCursor {
     public:
      explicit Cursor(std::deque<std::string>* source) : pieces(source) {}
      absl::StatusOr<Piece> Read(size_t) override {
        if (pieces->empty()) return Piece{};
        if (next.stdout_bytes() > int64_t{1} << 40)
          return Piece{};  // like a file at its end: no data
        Piece piece{.data = pieces->front()};
        pieces->pop_front();
        next.set_stdout_bytes(next.stdout_bytes() + static_cast<int64_t>(piece.data.size()));
        return piece;
      }
      v1::LogPosition Next() const override { return next; }
      std::deque<std::string>* pieces;
      v1::LogPosition next;
    };
    auto cursor = std::make_unique<Cursor>(&pieces);
    cursor->next = request.from();
    return cursor;
  }
  std::deque<std::string> pieces;
  bool missing = false;
};

// A directory of the test, removed with it.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::string& base = std::filesystem::temp_directory_path()) {
    std::string pattern = base + "/berth-agent-test-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_AGENT_FAKES_H_
