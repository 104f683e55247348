#include "support/log.h"

#include <fcntl.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "support/visible.h"

namespace berth {
namespace {

constexpr std::array<absl::string_view, 5> kLevels = {"trace", "debug", "info", "warn", "error"};
constexpr std::array<spdlog::level::level_enum, 5> kSpdlogLevels = {
    spdlog::level::trace, spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
    spdlog::level::err};

std::shared_ptr<spdlog::logger> MakeLogger(spdlog::sink_ptr sink, spdlog::level::level_enum level) {
  auto logger = std::make_shared<spdlog::logger>("berth", std::move(sink));
  logger->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      "%Y-%m-%dT%H:%M:%S.%eZ %-5l %v", spdlog::pattern_time_type::utc));
  logger->set_level(level);
  logger->flush_on(spdlog::level::info);
  return logger;
}

// Shared, so that a line being written while StartLog runs keeps its logger.
std::shared_ptr<spdlog::logger>& CurrentLogger() {
  static auto& logger = *new std::shared_ptr<spdlog::logger>(
      MakeLogger(std::make_shared<spdlog::sinks::stderr_sink_mt>(), spdlog::level::info));
  return logger;
}

bool NeedsQuotes(absl::string_view value) {
  if (value.empty() || FirstInvisible(value) != absl::string_view::npos) return true;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == '"' || byte == '\\' || byte == '=' || byte == 0x7f) return true;
  }
  return false;
}

absl::StatusOr<spdlog::level::level_enum> LevelFrom(absl::string_view level) {
  const auto* found =
      std::find(kLevels.begin(), kLevels.end(), level.empty() ? absl::string_view("info") : level);
  if (found == kLevels.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("log level \"", level, "\" is not one of ", absl::StrJoin(kLevels, ", ")));
  }
  return kSpdlogLevels[static_cast<size_t>(found - kLevels.begin())];
}

// A file that stays unwritable until someone changes something is a configuration error; a full
// disk may get space again.
absl::Status CannotWrite(const std::string& file, const char* why) {
  const int fd = open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  const int error = fd < 0 ? errno : 0;
  if (fd >= 0) close(fd);
  constexpr std::array kPassing = {0, EAGAIN, EDQUOT, EINTR, EIO, EMFILE, ENFILE, ENOMEM, ENOSPC};
  const bool passes = std::find(kPassing.begin(), kPassing.end(), error) != kPassing.end();
  const std::string text = absl::StrCat("log.file: ", why);
  return passes ? absl::UnavailableError(text) : absl::InvalidArgumentError(text);
}

}  // namespace

absl::Status StartLog(absl::string_view level, const std::string& file) {
  const absl::StatusOr<spdlog::level::level_enum> spdlog_level = LevelFrom(level);
  if (!spdlog_level.ok()) return spdlog_level.status();
  spdlog::sink_ptr sink;
  if (file.empty()) {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  } else {
    try {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file);
    } catch (const spdlog::spdlog_ex& error) {
      return CannotWrite(file, error.what());
    }
  }
  std::atomic_store(&CurrentLogger(), MakeLogger(std::move(sink), *spdlog_level));
  return absl::OkStatus();
}

absl::Status SetLogLevel(absl::string_view level) {
  const absl::StatusOr<spdlog::level::level_enum> spdlog_level = LevelFrom(level);
  if (!spdlog_level.ok()) return spdlog_level.status();
  std::atomic_load(&CurrentLogger())->set_level(*spdlog_level);
  return absl::OkStatus();
}

bool IsLogLevel(absl::string_view level) { return LevelFrom(level).ok(); }

void FlushLog() { std::atomic_load(&CurrentLogger())->flush(); }

bool LogEnabled(LogLevel level) {
  return std::atomic_load(&CurrentLogger())->should_log(kSpdlogLevels[static_cast<size_t>(level)]);
}

std::string FormatLogLine(absl::string_view event, LogFields fields) {
  std::string line = Visible(event);
  const char* separator = "  ";
  for (const LogField& field : fields) {
    absl::StrAppend(&line, separator, field.key, "=");
    separator = " ";
    if (NeedsQuotes(field.value)) {
      absl::StrAppend(&line, "\"", Visible(absl::Utf8SafeCEscape(field.value)), "\"");
    } else {
      line += field.value;
    }
  }
  return line;
}

void LogLine(LogLevel level, absl::string_view event, LogFields fields) {
  const auto logger = std::atomic_load(&CurrentLogger());
  const auto spdlog_level = kSpdlogLevels[static_cast<size_t>(level)];
  if (!logger->should_log(spdlog_level)) return;
  logger->log(spdlog_level, spdlog::string_view_t(FormatLogLine(event, fields)));
}

}  // namespace berth
