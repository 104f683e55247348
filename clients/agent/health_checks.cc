#include "clients/agent/health_checks.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "clients/agent/agent_config.h"
#include "clients/agent/disk_space.h"
#include "clients/agent/supervisor/spec.h"
#include "support/clock.h"
#include "support/proto_time.h"

namespace berth {
namespace {

constexpr int64_t kDefaultMinFree = int64_t{256} << 20;
constexpr size_t kMaxOutputBytes = 4096;
constexpr absl::Duration kPollInterval = absl::Milliseconds(50);
constexpr absl::Duration kBetweenRounds = absl::Seconds(1);  // at least, if only GPUs are queried

absl::Duration Or(const google::protobuf::Duration& d, absl::Duration otherwise) {
  const absl::Duration given = DurationFrom(d);
  return given > absl::ZeroDuration() ? given : otherwise;
}

CheckResult Bad(const char* check, std::string message) {
  return {.check = check, .good = false, .message = std::move(message)};
}
CheckResult Good(const char* check) { return {.check = check, .good = true, .message = ""}; }

// Runs the command in a separate process group with output to a pipe, and nothing else inherited.
int SpawnCommand(const std::vector<std::string>& argv, int output, pid_t* pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_adddup2(&actions, output, 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int error =
      posix_spawn(pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

// Waits until the process ends or time is up; then kills its group. Returns output up to a limit.
bool AwaitCommand(pid_t pid, int output, absl::Duration timeout, const std::atomic<bool>& stop,
                  std::string* text, int* status) {
  const absl::Time end = absl::Now() + timeout;
  bool in_time = true;
  char buffer[1024];
  for (bool ended = false; !ended;) {
    siginfo_t info{};
    ended = waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid != 0;
    if (!ended && (stop.load() || absl::Now() > end)) {
      in_time = false;
      kill(-pid, SIGKILL);
    }
    pollfd waiting{output, POLLIN, 0};
    if (!ended) poll(&waiting, 1, static_cast<int>(absl::ToInt64Milliseconds(kPollInterval)));
    for (ssize_t n; (n = read(output, buffer, sizeof buffer)) > 0;) {
      if (text->size() < kMaxOutputBytes) text->append(buffer, static_cast<size_t>(n));
    }
    if (!ended && (waiting.revents & POLLHUP) != 0) absl::SleepFor(kPollInterval);
  }
  kill(-pid, SIGKILL);  // its remaining processes; its zombie reserves the number
  waitpid(pid, status, 0);
  return in_time;
}

constexpr char kLinkDowned[] = "link_downed";

// The existing counters.
std::map<std::string, int64_t> PortErrors(const std::filesystem::path& counters) {
  std::map<std::string, int64_t> errors;
  for (const char* name : {kLinkDowned, "link_error_recovery", "local_link_integrity_errors",
                           "port_rcv_errors", "symbol_error"}) {
    std::string text;
    int64_t count = 0;
    if (ReadWholeFile(counters / name, &text) == 0 && absl::SimpleAtoi(text, &count))
      errors[name] = count;
  }
  return errors;
}

// A counter that was reset starts from zero.
std::vector<std::string> GrownErrors(const std::map<std::string, int64_t>& before,
                                     const std::map<std::string, int64_t>& now, double seconds) {
  std::vector<std::string> grown;
  for (const auto& [name, count] : now) {
    const auto known = before.find(name);
    if (known == before.end() || seconds <= 0) continue;
    const int64_t more = count - known->second;
    const bool downed = name == kLinkDowned && more > 0;
    if (downed || static_cast<double>(more) > kMaxInfinibandErrors * seconds)
      grown.push_back(absl::StrCat(name, " +", more));
  }
  return grown;
}

}  // namespace

CheckResult CheckDiskSpace(const std::string& directory, int64_t min_free) {
  const std::optional<DiskSpace> space = ReadDiskSpace(directory);
  if (!space) return Bad(kDiskCheck, absl::StrCat(directory, ": ", std::strerror(errno)));
  if (space->FewInodes())
    return Bad(kDiskCheck,
               absl::StrCat("almost no free inodes in ", directory, ": ", space->free_inodes));
  if (space->free_bytes >= min_free) return Good(kDiskCheck);
  return Bad(kDiskCheck,
             absl::StrCat("the disk is nearly full: ", space->free_bytes >> 20, " MiB free in ",
                          directory, ", ", min_free >> 20, " MiB required"));
}

CheckResult CheckClock(absl::Duration max_offset) {
  timex now{};
  const int state = adjtimex(&now);
  if (state < 0 || state == TIME_ERROR || (now.status & STA_UNSYNC) != 0) return Good(kClockCheck);
  const absl::Duration offset =
      (now.status & STA_NANO) != 0 ? absl::Nanoseconds(now.offset) : absl::Microseconds(now.offset);
  if (absl::AbsDuration(offset) <= max_offset) return Good(kClockCheck);
  return Bad(kClockCheck, absl::StrCat("the clock is off by ", absl::FormatDuration(offset)));
}

CheckResult CheckInfiniband(const std::string& root, absl::Time now, InfinibandSeen* seen) {
  std::map<std::string, std::map<std::string, int64_t>> errors;  // of ACTIVE ports
  std::error_code ignored;
  for (const auto& device : std::filesystem::directory_iterator(root, ignored)) {
    const std::filesystem::path ports = device.path() / "ports";
    for (const auto& port : std::filesystem::directory_iterator(ports, ignored)) {
      std::string state;
      if (ReadWholeFile(port.path() / "state", &state) != 0) continue;
      if (!absl::StrContains(state, "ACTIVE")) continue;
      errors[absl::StrCat(device.path().filename().string(), "/",
                          port.path().filename().string())] = PortErrors(port.path() / "counters");
    }
  }
  std::vector<std::string> down, troubled;
  for (const std::string& port : seen->active) {
    if (!errors.contains(port)) down.push_back(port);
  }
  const double seconds = absl::ToDoubleSeconds(now - seen->time);
  for (const auto& [port, counters] : errors) {
    seen->active.insert(port);
    for (const std::string& trouble : GrownErrors(seen->errors[port], counters, seconds))
      troubled.push_back(absl::StrCat(port, " ", trouble));
  }
  seen->errors = std::move(errors);
  seen->time = now;
  if (!down.empty())
    return Bad(kInfinibandCheck, absl::StrCat("no longer ACTIVE: ", absl::StrJoin(down, ", ")));
  if (troubled.empty()) return Good(kInfinibandCheck);
  return Bad(kInfinibandCheck, absl::StrCat("errors: ", absl::StrJoin(troubled, ", ")));
}

CheckResult CheckCommand(const std::vector<std::string>& argv, absl::Duration timeout,
                         const std::atomic<bool>& stop) {
  int output[2];
  if (pipe2(output, O_CLOEXEC | O_NONBLOCK) != 0)
    return Bad(kCommandCheck, absl::StrCat("pipe: ", std::strerror(errno)));
  // The command's end blocks, as programs expect.
  fcntl(output[1], F_SETFL, 0);
  pid_t pid = 0;
  const int error = SpawnCommand(argv, output[1], &pid);
  close(output[1]);
  std::string text;
  int status = 0;
  const bool in_time = error == 0 && AwaitCommand(pid, output[0], timeout, stop, &text, &status);
  close(output[0]);
  if (error != 0) return Bad(kCommandCheck, absl::StrCat(argv[0], ": ", std::strerror(error)));
  if (!in_time) return Bad(kCommandCheck, absl::StrCat(argv[0], " timed out"));
  if (status == 0) return Good(kCommandCheck);
  const std::string line = text.substr(0, text.find('\n'));
  return Bad(kCommandCheck, !line.empty() ? line : absl::StrCat(argv[0], " failed"));
}

HealthChecks::HealthChecks(const config::v1::Health& config, Options options, Tell tell)
    : config_(config),
      options_(std::move(options)),
      tell_(std::move(tell)),
      gpu_checks_(config),
      gpu_watch_(options_.probe, options_.nvml_library) {
  thread_ = std::thread([this] { Run(); });
}

HealthChecks::~HealthChecks() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void HealthChecks::LookAgain(bool forget) {
  absl::MutexLock lock(&mutex_);
  again_ = true;
  forget_ |= forget;
}

void HealthChecks::WithoutGpuWatch(absl::FunctionRef<void()> call) {
  absl::MutexLock lock(&gpu_mutex_);
  gpu_watch_.Restart();
  call();
}

uint64_t HealthChecks::LookAtGpus() {
  absl::MutexLock lock(&mutex_);
  gpus_ = true;
  return begun_ + 1;
}

void HealthChecks::Run() {
  const absl::Duration interval = Or(config_.interval(), absl::Seconds(30));
  absl::Duration next_full = absl::ZeroDuration();
  do {
    uint64_t number = 0;
    {
      absl::MutexLock lock(&mutex_);
      number = ++begun_;
      gpus_ = false;
    }
    HealthRound round;
    if (SystemClock().Steady() < next_full) {
      AskGpus(&round);
    } else {
      round = Round();
      next_full = SystemClock().Steady() + interval;
    }
    round.number = number;
    tell_(std::move(round));
  } while (AwaitNext(&next_full));
}

// Waits until a round is due; false: this object ends.
bool HealthChecks::AwaitNext(absl::Duration* next_full) {
  absl::MutexLock lock(&mutex_);
  const auto full = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || again_; };
  const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || again_ || gpus_;
  };
  // Tasks may fail every moment.
  const absl::Duration left = *next_full - SystemClock().Steady();
  if (!mutex_.AwaitWithTimeout(absl::Condition(&full), std::min(left, kBetweenRounds))) {
    const absl::Duration rest = *next_full - SystemClock().Steady();
    mutex_.AwaitWithTimeout(absl::Condition(&any), std::max(rest, absl::ZeroDuration()));
  }
  if (stopping_) return false;
  if (std::exchange(again_, false)) {
    absl::MutexLock gpus(&gpu_mutex_);
    gpu_watch_.Restart();
    no_driver_ = false;
    *next_full = absl::ZeroDuration();
  }
  if (std::exchange(forget_, false)) gpu_checks_.Forget();
  return true;
}

HealthRound HealthChecks::Round() {
  const auto wanted = [this](const char* check) {
    return EffectOfCheck(config_, check) != v1::NodeCondition::EFFECT_UNSPECIFIED;
  };
  HealthRound round;
  std::vector<CheckResult>& results = round.results;
  LookAtDisk(&results);
  if (wanted(kClockCheck))
    results.push_back(CheckClock(Or(config_.max_clock_offset(), absl::Seconds(1))));
  if (wanted(kInfinibandCheck))
    results.push_back(CheckInfiniband("/sys/class/infiniband", absl::Now(), &ports_));
  if (!config_.command().empty() && wanted(kCommandCheck)) {
    results.push_back(CheckCommand({config_.command().begin(), config_.command().end()},
                                   Or(config_.command_timeout(), absl::Seconds(30)), stopping_));
  }
  AskGpus(&round);
  return round;
}

CheckResult HealthChecks::CheckDisks(int64_t min_free) const {
  CheckResult result = CheckDiskSpace(options_.state_directory, min_free);
  if (!result.good || options_.scratch_directory.empty()) return result;
  return CheckDiskSpace(options_.scratch_directory, min_free);
}

// A drain waits until the tasks that fill the disk have been ended.
void HealthChecks::LookAtDisk(std::vector<CheckResult>* results) const {
  const bool nobodys = !options_.disk_exhausted || options_.disk_exhausted();
  struct Bound {
    const char* check;
    int64_t bytes;
  };
  for (const Bound& bound : {Bound{kDiskCheck, MinFreeBytes(config_)},
                             Bound{kDiskFullCheck, config_.drain_free_bytes()}}) {
    const v1::NodeCondition::Effect effect = EffectOfCheck(config_, bound.check);
    if (effect == v1::NodeCondition::EFFECT_UNSPECIFIED) continue;
    CheckResult result = CheckDisks(bound.bytes);
    if (effect == v1::NodeCondition::DRAIN && !nobodys) result = Good(bound.check);
    result.check = bound.check;
    results->push_back(std::move(result));
  }
}

// Ignored checks are dropped here; the report also feeds the metrics.
void HealthChecks::AskGpus(HealthRound* round) {
  if (options_.probe.empty() || no_driver_) return;
  absl::StatusOr<discovery::GpuReport> report = [this] {
    absl::MutexLock lock(&gpu_mutex_);
    return gpu_watch_.Ask(discovery::kGpuReportTimeout, stopping_);
  }();
  // A driver that is not loaded is not an error here: discovery reports GPUs without a driver.
  no_driver_ = absl::IsNotFound(report.status()) || absl::IsFailedPrecondition(report.status());
  if (no_driver_ || absl::IsCancelled(report.status())) return;
  std::vector<CheckResult> results;
  if (report.ok()) {
    results = gpu_checks_.Judge(*report, SystemClock().Steady());
    round->gpus = *std::move(report);
  } else {
    results.push_back(GpuChecks::NoAnswer(std::string(report.status().message())));
  }
  round->last_xids = gpu_checks_.last_xids();
  for (CheckResult& result : results) {
    if (EffectOfCheck(config_, result.check) == v1::NodeCondition::EFFECT_UNSPECIFIED) continue;
    round->results.push_back(std::move(result));
  }
}

namespace {

using config::v1::Health;

// The configured effect or the default; EFFECT_UNSPECIFIED for a check without a setting.
Health::Effect SettingOf(const Health& config, const std::string& check) {
  const auto or_else = [](Health::Effect given, Health::Effect otherwise) {
    return given == Health::EFFECT_UNSPECIFIED ? otherwise : given;
  };
  if (check == kDiskCheck) return or_else(config.disk_space(), Health::CORDON);
  if (check == kDiskFullCheck)
    return config.drain_free_bytes() > 0 ? Health::DRAIN : Health::IGNORE;
  if (check == kClockCheck) return or_else(config.clock(), Health::NOTE);
  if (check == kInfinibandCheck) return or_else(config.infiniband(), Health::NOTE);
  if (check == kCommandCheck) return or_else(config.command_effect(), Health::DRAIN);
  if (check == kGpuDriverCheck) return or_else(config.gpu_driver(), Health::CORDON);
  if (check == kDevicesCheck) return or_else(config.devices(), Health::NOTE);
  if (check == kGpuXidCheck) return or_else(config.gpu_xid(), Health::DEVICE);
  if (check == kGpuEccCheck) return or_else(config.gpu_ecc(), Health::DEVICE);
  if (check == kGpuMemoryCheck) return or_else(config.gpu_memory(), Health::DEVICE);
  if (check == kGpuNvlinkCheck) return or_else(config.gpu_nvlink(), Health::NOTE);
  return Health::EFFECT_UNSPECIFIED;
}

bool IsOfDevices(const std::string& check) {
  return check == kGpuXidCheck || check == kGpuEccCheck || check == kGpuMemoryCheck ||
         check == kGpuNvlinkCheck;
}

}  // namespace

int64_t MinFreeBytes(const Health& config) {
  return config.min_free_bytes() > 0 ? config.min_free_bytes() : kDefaultMinFree;
}

bool TakesDevice(const Health& config, const std::string& check) {
  if (!IsOfDevices(check)) return false;
  const Health::Effect effect = SettingOf(config, check);
  return effect != Health::NOTE && effect != Health::IGNORE;
}

v1::NodeCondition::Effect EffectOfCheck(const Health& config, const std::string& check) {
  if (check == kDiscoveryCheck) return v1::NodeCondition::NOTE;
  return EffectOf(SettingOf(config, check), v1::NodeCondition::DRAIN);
}

bool TaintsNode(const Health& config, const std::string& check) {
  return SettingOf(config, check) == Health::TAINT;
}

}  // namespace berth
