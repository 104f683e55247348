// berth cp SOURCE TARGET: copies files and directories into a running task, or out of it, with the
// tar of the task.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "clients/cli/archive.h"
#include "clients/cli/command.h"
#include "clients/cli/copy_place.h"
#include "clients/cli/human.h"
#include "clients/session/task_command.h"
#include "support/visible.h"

namespace berth {
namespace {

constexpr absl::Duration kProgressEvery = absl::Milliseconds(250);

struct CopyArguments {
  std::string source;
  std::string target;
};

// On a terminal, the amount so far on one line.
class CopyProgress {
 public:
  explicit CopyProgress(Session& session) : session_(session) {}
  ~CopyProgress() {
    if (shown_) session_.err() << "\r\033[K" << std::flush;
  }
  CopyProgress(const CopyProgress&) = delete;
  CopyProgress& operator=(const CopyProgress&) = delete;

  void Add(size_t bytes) {
    bytes_ += static_cast<int64_t>(bytes);
    const absl::Duration now = session_.io().environment.clock->Steady();
    if (!session_.io().err_is_terminal || now < next_) return;
    next_ = now + kProgressEvery;
    shown_ = true;
    session_.err() << "\r\033[K" << HumanBytes(bytes_) << std::flush;
  }

 private:
  Session& session_;
  int64_t bytes_ = 0;
  absl::Duration next_;
  bool shown_ = false;
};

bool IsLocalDirectory(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

void ShowSkipped(Session& session, const ArchiveReport& report) {
  for (const std::string& skipped : report.skipped) session.Warn("left out: " + skipped);
  if (report.more_skipped > 0)
    session.Warn(absl::StrCat("left out: ", report.more_skipped, " more"));
}

// How the copy ended: the first error counts, that of the task's tar before ours, which may only
// follow from it.
ExitCode Finished(Session& session, const absl::StatusOr<int>& tar, const absl::Status& ours,
                  const ArchiveReport& report) {
  ShowSkipped(session, report);
  if (!tar.ok() && (ours.ok() || !absl::IsCancelled(tar.status())))
    return session.Finish(tar.status());
  if (!ours.ok()) return session.Finish(ours);
  if (*tar == 0) return ExitCode::kOk;
  session.err() << "berth: tar in the task exited with code " << *tar
                << (*tar == 127 ? ": berth cp needs tar there" : "") << "\n";
  return ExitCode::kRefused;
}

absl::StatusOr<int> RunThere(Session& session, const CopyPlace& place, const TaskCommand& command) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  return RunInTask(**client, place.job, place.task, command, session.err());
}

ExitCode CopyOut(Session& session, const CopyPlace& from, const std::string& to) {
  const bool into = IsLocalDirectory(to);
  const std::string target = into ? absl::StrCat(absl::StripSuffix(to, "/"), "/", from.leaf) : to;
  ArchiveReport report;
  absl::Status ours;
  CopyProgress progress(session);
  TaskCommand command;
  command.argv = {"tar", "-cf", "-", "-C", from.directory, "--", from.leaf};
  command.take = [&](const TaskCommand::Next& next) {
    const auto counted = [&] {
      std::string piece = next();
      progress.Add(piece.size());
      return piece;
    };
    ours = ExtractTar(counted, from.leaf, std::string(absl::StripSuffix(target, "/")), &report);
    return ours.ok();
  };
  const absl::StatusOr<int> tar = RunThere(session, from, command);
  return Finished(session, tar, tar.ok() && *tar != 0 ? absl::OkStatus() : ours, report);
}

// Whether `path` in the task is a directory.
absl::StatusOr<bool> IsDirectoryThere(Session& session, const CopyPlace& place,
                                      const std::string& path) {
  TaskCommand command;
  command.argv = {"test", "-d", path};
  const absl::StatusOr<int> code = RunThere(session, place, command);
  if (!code.ok()) return code.status();
  return *code == 0;
}

ExitCode CopyIn(Session& session, const std::string& from, const CopyPlace& to) {
  const std::string source(absl::StripSuffix(from, "/"));
  struct stat info {};
  if (source.empty() || lstat(source.c_str(), &info) != 0) {
    session.err() << "berth: " << Visible(from) << ": " << std::strerror(errno) << "\n";
    return ExitCode::kInvalid;
  }
  const absl::StatusOr<bool> into = IsDirectoryThere(session, to, to.path);
  if (!into.ok()) return session.Finish(into.status());
  if (!*into && (to.leaf.empty() || absl::EndsWith(to.path, "/"))) {
    session.err() << "berth: " << Visible(to.path) << " is not a directory of the task\n";
    return ExitCode::kInvalid;
  }
  const std::string name = *into ? source.substr(source.rfind('/') + 1) : to.leaf;
  if (name == "." || name == "..") {
    session.err() << "berth: name a file or a directory, not " << Visible(from) << "\n";
    return ExitCode::kInvalid;
  }
  ArchiveReport report;
  absl::Status ours;
  CopyProgress progress(session);
  TaskCommand command;
  command.argv = {"tar", "-xopf", "-", "-C", *into ? to.path : to.directory};
  command.give = [&](const TaskCommand::Write& write) {
    const auto counted = [&](absl::string_view piece) {
      progress.Add(piece.size());
      return write(piece);
    };
    ours = WriteTar(source, name, counted, &report);
    return ours.ok();
  };
  const absl::StatusOr<int> tar = RunThere(session, to, command);
  return Finished(session, tar, tar.ok() && *tar != 0 ? absl::OkStatus() : ours, report);
}

ExitCode CopyFiles(Session& session, const CopyArguments& arguments) {
  const auto from = ParseCopyPlace(arguments.source);
  const auto to = ParseCopyPlace(arguments.target);
  for (const absl::Status& status : {from.status(), to.status()}) {
    if (status.ok()) continue;
    session.err() << "berth: " << Visible(status.message()) << "\n";
    return ExitCode::kUsage;
  }
  if (from->has_value() == to->has_value()) {
    session.err() << "berth: one of the two must be in a task: JOB:PATH or JOB/TASK:PATH\n";
    return ExitCode::kUsage;
  }
  if (to->has_value()) return CopyIn(session, arguments.source, **to);
  if ((*from)->leaf.empty()) {
    session.err() << "berth: name a file or a directory of the task, not " << Visible((*from)->path)
                  << "\n";
    return ExitCode::kUsage;
  }
  return CopyOut(session, **from, arguments.target);
}

}  // namespace

void AddCopyCommand(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<CopyArguments>();
  CLI::App* copy =
      AddCommand(app, session, "cp", "copy files or directories into a running task, or out of it",
                 [arguments](Session& s) { return CopyFiles(s, *arguments); });
  copy->add_option("SOURCE", arguments->source, "a local path, or JOB:PATH or JOB/TASK:PATH")
      ->required();
  copy->add_option("TARGET", arguments->target, "likewise; one of the two is in a task")
      ->required();
}

}  // namespace berth
