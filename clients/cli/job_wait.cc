#include "clients/cli/job_wait.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "clients/cli/human.h"
#include "support/proto_json.h"

namespace berth {
namespace {

using JobStub = v1::JobService::StubInterface;

absl::StatusOr<v1::Job> GetJob(Session& session, const std::string& name) {
  v1::GetJobRequest request;
  request.set_name(name);
  return session.Call(&JobStub::GetJob, request);
}

// Follows one job from what it is now to its end.
class JobWaiter {
 public:
  JobWaiter(Session& session, const std::string& name) : session_(session), name_(name) {}

  absl::Status Wait(absl::Duration timeout) {
    // Asked first with the usual time-out, so that an unknown job or an absent server is told at
    // once.
    const absl::Status known = Look();
    if (!known.ok() || HasEnded(state_)) return known;
    v1::WatchRequest request;
    request.add_jobs(name_);
    const absl::StatusOr<Client*> client = session_.client();
    if (!client.ok()) return client.status();
    const auto see = [this](const v1::WatchResponse& response) { return See(response); };
    const absl::Duration end = session_.io().environment.clock->Steady() + timeout;
    for (;;) {
      begun_ = false;
      const absl::Duration left = end - session_.io().environment.clock->Steady();
      const absl::Status status = (*client)->Watch(request, see, left);
      if (absl::IsOutOfRange(status)) continue;  // too far behind: look again
      return problem_.ok() ? status : problem_;
    }
  }

  v1::JobState state() const { return state_; }

 private:
  absl::Status Look() {
    const absl::StatusOr<v1::Job> job = GetJob(session_, name_);
    if (job.ok()) state_ = job->status().state();
    return job.status();
  }

  // False = no more of it.
  bool See(const v1::WatchResponse& response) {
    if (!begun_) {
      begun_ = true;  // the job may have changed before the watch began
      problem_ = Look();
    }
    for (const v1::ChangeEvent& event : response.events()) {
      if (event.job() != name_) continue;
      if (event.type() == v1::ChangeEvent::JOB_DELETED && !HasEnded(state_)) {
        problem_ = absl::NotFoundError(absl::StrCat("job \"", name_, "\" was deleted"));
      }
      if (event.type() == v1::ChangeEvent::JOB_CHANGED) state_ = event.job_state();
    }
    return problem_.ok() && !HasEnded(state_);
  }

  Session& session_;
  const std::string name_;
  v1::JobState state_ = v1::JOB_STATE_UNSPECIFIED;
  bool begun_ = false;
  absl::Status problem_;
};

std::string EventText(const v1::ChangeEvent& event, const Session& session) {
  const bool colors = session.colors();
  std::string text = absl::StrCat(HumanTime(event.has_time(), event.time(), session.io().time_zone),
                                  "  job/", event.job());
  switch (event.type()) {
    case v1::ChangeEvent::JOB_SUBMITTED:
      absl::StrAppend(&text, "  submitted");
      break;
    case v1::ChangeEvent::JOB_DELETED:
      absl::StrAppend(&text, "  deleted");
      break;
    case v1::ChangeEvent::JOB_UPDATED:
      absl::StrAppend(&text, "  updated");
      break;
    case v1::ChangeEvent::JOB_CHANGED:
      absl::StrAppend(&text, "  ", Paint(JobStateWord(event.job_state()), colors));
      break;
    case v1::ChangeEvent::TASK_CHANGED:
      absl::StrAppend(&text, "  ", event.task(), "  ",
                      Paint(TaskStateWord(event.task_state()), colors));
      break;
    default:
      break;
  }
  if (!event.node().empty()) absl::StrAppend(&text, "  on ", event.node());
  if (event.exit_signal() != 0) {
    absl::StrAppend(&text, "  signal ", event.exit_signal());
  } else if (event.has_exit_code()) {
    absl::StrAppend(&text, "  exit ", event.exit_code());
  }
  if (!event.message().empty()) absl::StrAppend(&text, "  ", event.message());
  return text;
}

void PrintEvent(Session& session, const v1::ChangeEvent& event) {
  if (session.options.format != Format::kJson) {
    session.out() << EventText(event, session) << "\n";
    return;
  }
  session.out() << WriteJson(event) << "\n";
}

}  // namespace

ExitCode WaitForJob(Session& session, const std::string& name, absl::Duration timeout) {
  JobWaiter waiter(session, name);
  const absl::Status status = waiter.Wait(timeout);
  if (absl::IsDeadlineExceeded(status)) {
    session.err() << "berth: job " << name
                  << " has not ended: " << JobStateWord(waiter.state()).text << "\n";
    return ExitCode::kWaitTimeout;
  }
  if (!status.ok()) return session.Finish(status);
  const absl::StatusOr<v1::Job> job = GetJob(session, name);
  session.out() << "job/" << name << " " << Paint(JobStateWord(waiter.state()), session.colors());
  if (job.ok() && !job->status().message().empty())
    session.out() << ": " << job->status().message();
  session.out() << "\n";
  return waiter.state() == v1::JOB_SUCCEEDED ? ExitCode::kOk : ExitCode::kJobFailed;
}

ExitCode FollowJobs(Session& session, const std::vector<std::string>& names) {
  std::set<std::string> running;
  for (const std::string& name : names) {
    const absl::StatusOr<v1::Job> job = GetJob(session, name);
    if (!job.ok()) return session.Finish(job.status());
    session.out() << "job/" << name << " is " << JobStateWord(job->status().state()).text << "\n";
    if (!HasEnded(job->status().state())) running.insert(name);
  }
  if (!names.empty() && running.empty()) return ExitCode::kOk;
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return session.Finish(client.status());
  v1::WatchRequest request;
  for (const std::string& name : running) request.add_jobs(name);
  const auto see = [&](const v1::WatchResponse& response) {
    for (const v1::ChangeEvent& event : response.events()) {
      PrintEvent(session, event);
      const bool ended =
          event.type() == v1::ChangeEvent::JOB_CHANGED && HasEnded(event.job_state());
      if (ended || event.type() == v1::ChangeEvent::JOB_DELETED) running.erase(event.job());
    }
    session.out().flush();
    return names.empty() || !running.empty();
  };
  return session.Finish((*client)->Watch(request, see));
}

}  // namespace berth
