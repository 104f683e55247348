#include "clients/cli/job_wait.h"

#include <functional>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "clients/cli/human.h"
#include "clients/cli/job_view.h"
#include "support/proto_json.h"

namespace berth {
namespace {

using JobStub = v1::JobService::StubInterface;

absl::StatusOr<v1::Job> GetJob(Session& session, const std::string& name) {
  v1::GetJobRequest request;
  request.set_name(name);
  return session.Call(&JobStub::GetJob, request);
}

constexpr size_t kMaxListedUnended = 10;  // jobs that a timeout lists

// Follows jobs from their present states to their ends.
class JobsWaiter {
 public:
  // `ended` is called once for each job, when the job has ended.
  JobsWaiter(Session& session, const std::vector<std::string>& names, WaitFor what,
             std::function<void(const v1::Job&)> ended)
      : session_(session), what_(what), ended_(std::move(ended)) {
    for (const std::string& name : names) open_[name] = v1::JOB_STATE_UNSPECIFIED;
    count_ = open_.size();
  }

  absl::Status Wait(absl::Duration timeout) {
    // The first look has the usual timeout, so that an unknown job or an unreachable server is
    // reported at once.
    const absl::Status known = LookAtAll();
    if (!known.ok() || Done()) return known;
    const absl::StatusOr<Client*> client = session_.client();
    if (!client.ok()) return client.status();
    const auto see = [this](const v1::WatchResponse& response) { return See(response); };
    const absl::Duration end = session_.io().environment.clock->Steady() + timeout;
    for (;;) {
      begun_ = false;
      v1::WatchRequest request;
      for (const auto& job : open_) request.add_jobs(job.first);
      const absl::Duration left = end - session_.io().environment.clock->Steady();
      const absl::Status status = (*client)->Watch(request, see, left);
      if (absl::IsOutOfRange(status)) continue;  // too far behind: look again
      return problem_.ok() ? status : problem_;
    }
  }

  // Those that have not ended, with their states.
  const std::map<std::string, v1::JobState>& open() const { return open_; }

 private:
  bool Done() const { return open_.empty() || (what_ == WaitFor::kAny && open_.size() < count_); }

  absl::Status LookAtAll() {
    std::vector<std::string> names;
    for (const auto& job : open_) names.push_back(job.first);
    for (const std::string& name : names) {
      const absl::Status status = Look(name);
      if (!status.ok() || Done()) return status;
    }
    return absl::OkStatus();
  }
  absl::Status Look(const std::string& name) {
    const absl::StatusOr<v1::Job> job = GetJob(session_, name);
    if (!job.ok()) return job.status();
    open_[name] = job->status().state();
    if (!HasEnded(job->status().state())) return absl::OkStatus();
    open_.erase(name);
    ended_(*job);
    return absl::OkStatus();
  }

  // Returns false to end the watch.
  bool See(const v1::WatchResponse& response) {
    if (!begun_) {
      begun_ = true;  // jobs may have changed before the watch began
      problem_ = LookAtAll();
    }
    for (const v1::ChangeEvent& event : response.events()) {
      if (problem_.ok() && !Done() && open_.contains(event.job())) problem_ = SeeEvent(event);
    }
    return problem_.ok() && !Done();
  }
  absl::Status SeeEvent(const v1::ChangeEvent& event) {
    if (event.type() == v1::ChangeEvent::JOB_DELETED) {
      return absl::NotFoundError(absl::StrCat("job \"", event.job(), "\" was deleted"));
    }
    if (event.type() != v1::ChangeEvent::JOB_CHANGED) return absl::OkStatus();
    open_[event.job()] = event.job_state();
    if (!HasEnded(event.job_state())) return absl::OkStatus();
    const absl::StatusOr<v1::Job> job = GetJob(session_, event.job());
    v1::Job ended = job.ok() ? *job : v1::Job();
    ended.set_name(event.job());
    ended.mutable_status()->set_state(event.job_state());  // it may be deleted already
    open_.erase(event.job());
    ended_(ended);
    return absl::OkStatus();
  }

  Session& session_;
  const WaitFor what_;
  const std::function<void(const v1::Job&)> ended_;
  std::map<std::string, v1::JobState> open_;
  size_t count_ = 0;
  bool begun_ = false;
  absl::Status problem_;
};

void PrintEnd(Session& session, const v1::Job& job) {
  session.out() << "job/" << job.name() << " "
                << Paint(JobStateWord(job.status().state()), session.colors());
  if (!job.status().message().empty()) session.out() << ": " << job.status().message();
  session.out() << "\n" << std::flush;
}

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

ExitCode WaitForJobs(Session& session, const std::vector<std::string>& names, WaitFor what,
                     absl::Duration timeout) {
  const Format format = session.options.format;
  const bool as_text = format == Format::kTable || format == Format::kWide;
  std::vector<v1::Job> jobs;
  ExitCode code = ExitCode::kOk;
  JobsWaiter waiter(session, names, what, [&](const v1::Job& job) {
    if (job.status().state() != v1::JOB_SUCCEEDED) code = ExitCode::kJobFailed;
    if (as_text) PrintEnd(session, job);
    jobs.push_back(job);
  });
  const absl::Status status = waiter.Wait(timeout);
  if (!as_text && !jobs.empty()) Print(session, jobs, names.size() == 1, JobShape());
  if (!absl::IsDeadlineExceeded(status)) return status.ok() ? code : session.Finish(status);
  size_t printed = 0;
  for (const auto& [name, state] : waiter.open()) {
    if (printed++ == kMaxListedUnended) break;
    session.err() << "berth: job " << name << " has not ended: " << JobStateWord(state).text
                  << "\n";
  }
  if (waiter.open().size() > kMaxListedUnended) {
    session.err() << "berth: " << waiter.open().size() - kMaxListedUnended
                  << " more have not ended\n";
  }
  return ExitCode::kWaitTimeout;
}

ExitCode WaitForJob(Session& session, const std::string& name, absl::Duration timeout) {
  return WaitForJobs(session, {name}, WaitFor::kAll, timeout);
}

ExitCode FollowJobs(Session& session, const std::vector<std::string>& names) {
  std::set<std::string> running;
  for (const std::string& name : names) {
    const absl::StatusOr<v1::Job> job = GetJob(session, name);
    if (!job.ok()) return session.Finish(job.status());
    if (session.options.format == Format::kTable) {
      session.out() << "job/" << name << " is " << JobStateWord(job->status().state()).text << "\n";
    }
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
