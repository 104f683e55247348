#include "clients/cli/run_wait.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "clients/cli/attach.h"
#include "clients/cli/explain_view.h"
#include "clients/cli/human.h"
#include "clients/cli/job_view.h"
#include "clients/cli/resource_names.h"
#include "clients/session/terminal_io.h"

namespace berth {
namespace {

using JobStub = v1::JobService::StubInterface;
using ExplainStub = v1::ExplainService::StubInterface;

constexpr absl::Duration kLookEvery = absl::Milliseconds(400);
constexpr absl::Duration kExplainEvery = absl::Seconds(2);
constexpr absl::Duration kSlice = absl::Milliseconds(50);  // in which Ctrl-C is noticed
constexpr auto kInterruptedRun = static_cast<ExitCode>(130);

class RunWaiter {
 public:
  RunWaiter(Session& session, const std::string& job, uint32_t after)
      : session_(session), job_(job), after_(after) {}
  ~RunWaiter() { ClearLine(); }
  RunWaiter(const RunWaiter&) = delete;
  RunWaiter& operator=(const RunWaiter&) = delete;

  RunWait Wait() {
    RunWait result;
    while (!Look(&result)) {
      const absl::Duration end = Steady() + kLookEvery;
      while (Steady() < end && !result.code.has_value()) {
        session_.io().environment.sleeper->Sleep(kSlice);
        if (interrupt_.Take()) result.code = Interrupted();
      }
      if (result.code.has_value()) break;
    }
    return result;
  }

 private:
  absl::Duration Steady() const { return session_.io().environment.clock->Steady(); }

  // True if the wait is over.
  bool Look(RunWait* result) {
    v1::GetJobRequest request;
    request.set_name(job_);
    const absl::StatusOr<v1::Job> job = session_.Call(&JobStub::GetJob, request);
    if (!job.ok()) {
      ClearLine();
      result->code = session_.Finish(job.status());
      return true;
    }
    const v1::JobState state = job->status().state();
    if (HasEnded(state)) result->ended = *job;
    const v1::JobSpec& spec = job->spec();
    result->alone = spec.groups_size() == 1 && spec.groups(0).replicas() == 1;
    if (HasEnded(state) || state == v1::JOB_RUNNING || state == v1::JOB_COMPLETING) {
      if (LookAtTask(result)) return true;
      if (HasEnded(state)) return true;
    }
    Show(*job);
    return false;
  }

  // Whether it runs, or has run, in a later attempt.
  bool LookAtTask(RunWait* result) {
    const absl::StatusOr<v1::Task> task = FindTask(session_, job_, "");
    if (!task.ok() || task->attempt() <= after_) return false;
    const bool runs = task->state() == v1::TASK_RUNNING;
    if (!runs && !TaskExitCode(*task).has_value()) return false;
    result->task = NameOfTask(*task);
    result->attempt = task->attempt();
    return true;
  }

  void Show(const v1::Job& job) {
    const v1::JobState state = job.status().state();
    std::string text = absl::StrCat("job/", job_, " ", JobStateWord(state).text);
    if (session_.io().err_is_terminal) {
      if (state == v1::JOB_PENDING || state == v1::JOB_HELD)
        text += Explained();
      else if (!job.status().progress().status().empty())
        absl::StrAppend(&text, ": ", job.status().progress().status());
    }
    ShowLine(text);
  }

  // ", 2nd of 5 in its queue; starts ..."
  std::string Explained() {
    if (Steady() < explain_at_) return explained_;
    explain_at_ = Steady() + kExplainEvery;
    v1::ExplainJobRequest request;
    request.set_job(job_);
    const absl::StatusOr<v1::ExplainJobResponse> answer =
        session_.Call(&ExplainStub::ExplainJob, request);
    if (!answer.ok()) return explained_;
    explained_.clear();
    if (answer->position() > 0) {
      explained_ = absl::StrCat(", number ", answer->position(), " of ", answer->queue_jobs(),
                                " in its queue");
    }
    const std::string starts = EstimateSentence(answer->estimate(), session_);
    if (!starts.empty()) absl::StrAppend(&explained_, "; starts ", starts);
    if (!answer->reasons().empty()) {
      absl::StrAppend(&explained_, "; ",
                      HumanReasonUntil(answer->reasons(0), session_.io().time_zone));
    }
    return explained_;
  }

  void ShowLine(std::string text) {
    text = absl::StrReplaceAll(text, {{"\n", " "}, {"\r", " "}});
    const size_t width = session_.io().width;
    if (width > 1) text = ShortenTo(text, width - 1);
    if (text == shown_) return;
    shown_ = text;
    if (session_.io().err_is_terminal)
      session_.err() << "\r\033[K" << text << std::flush;
    else
      session_.err() << "berth: " << text << "\n" << std::flush;
  }

  // At most `most` characters; the continuation bytes of UTF-8 are none.
  static std::string ShortenTo(const std::string& text, size_t most) {
    size_t characters = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      if ((static_cast<unsigned char>(text[i]) & 0xc0) == 0x80) continue;
      if (characters++ == most) return text.substr(0, i);
    }
    return text;
  }

  void ClearLine() {
    if (!std::exchange(shown_, "").empty() && session_.io().err_is_terminal)
      session_.err() << "\r\033[K" << std::flush;
  }

  // Nothing: the wait goes on.
  std::optional<ExitCode> Interrupted() {
    ClearLine();
    if (session_.io().in_is_terminal && session_.io().in != nullptr) {
      std::string word;
      bool answered = true;
      do {
        session_.err() << "\nCancel job " << job_ << "? [Y/n] " << std::flush;
        std::string answer;
        answered = static_cast<bool>(std::getline(*session_.io().in, answer));
        word = absl::AsciiStrToLower(absl::StripAsciiWhitespace(answer));
      } while (answered && !word.empty() && word != "y" && word != "yes" && word != "n" &&
               word != "no");
      if (answered && (word == "n" || word == "no")) {
        session_.err() << "berth: job " << job_ << " goes on; berth attach " << job_
                       << " connects to its terminal, if it has one\n";
        return kInterruptedRun;
      }
    }
    v1::CancelJobRequest request;
    request.set_name(job_);
    request.set_reason("cancelled by Ctrl-C in berth run");
    const absl::StatusOr<v1::Job> job = session_.Call(&JobStub::CancelJob, request);
    if (!job.ok()) return session_.Finish(job.status());
    session_.err() << "berth: job " << job_ << " cancelled\n";
    return kInterruptedRun;
  }

  Session& session_;
  const std::string job_;
  const uint32_t after_;
  InterruptFlag interrupt_;
  std::string shown_;
  std::string explained_;
  absl::Duration explain_at_;
};

}  // namespace

RunWait WaitForRun(Session& session, const std::string& job, uint32_t after) {
  return RunWaiter(session, job, after).Wait();
}

}  // namespace berth
