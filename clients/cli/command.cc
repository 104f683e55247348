#include "clients/cli/command.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "clients/cli/by_name.h"
#include "clients/cli/resource_names.h"
#include "support/quantity.h"

namespace berth {
namespace {

constexpr absl::Duration kWatchInterval = absl::Seconds(1);
constexpr char kClearScreen[] = "\033[H\033[2J";

}  // namespace

const CLI::Validator kIsDuration(
    [](const std::string& text) -> std::string {
      const auto parsed = ParseDuration(text);
      return parsed.ok() ? "" : std::string(parsed.status().message());
    },
    "DURATION");

const CLI::Validator kIsKeyValue(
    [](const std::string& text) -> std::string {
      const size_t at = text.find('=');
      return at == std::string::npos || at == 0
                 ? absl::StrCat("expected KEY=VALUE, got \"", text, "\"")
                 : "";
    },
    "KEY=VALUE");

absl::Duration DurationFrom(const std::string& text) {
  const auto parsed = ParseDuration(text);
  return parsed.ok() ? absl::Seconds(parsed->seconds) + absl::Nanoseconds(parsed->nanos)
                     : absl::ZeroDuration();
}

std::pair<std::string, std::string> KeyValueFrom(const std::string& text) {
  const size_t at = text.find('=');
  return {text.substr(0, at), at == std::string::npos ? "" : text.substr(at + 1)};
}

CLI::App* AddNoun(CLI::App& app, const std::string& name, const std::string& description) {
  CLI::App* noun = app.add_subcommand(name, description);
  noun->require_subcommand(1);
  return noun;
}

CLI::App* AddCommand(CLI::App& noun, Session& session, const std::string& name,
                     const std::string& description, Action action) {
  CLI::App* command = noun.add_subcommand(name, description);
  command->callback([&session, action = std::move(action)] { session.action = action; });
  return command;
}

CLI::App* AddNames(CLI::App& noun, Session& session, const std::string& verb,
                   const std::string& description,
                   std::function<ExitCode(Session&, const Names&)> run) {
  auto names = std::make_shared<Names>();
  CLI::App* command =
      AddCommand(noun, session, verb, description,
                 [names, run = std::move(run)](Session& s) { return run(s, *names); });
  command->add_option("NAME", *names, noun.get_name())
      ->required()
      ->transform(NameOf(noun.get_name()));
  return command;
}

bool PrintMessage(Session& session, const google::protobuf::Message& message) {
  if (session.options.format == Format::kJson) {
    session.out() << JsonOf(message) << "\n";
    return true;
  }
  if (session.options.format != Format::kYaml) return false;
  session.out() << YamlOf(message);
  return true;
}

ExitCode ForEachName(Session& session, const std::vector<std::string>& names,
                     const std::function<absl::Status(const std::string&)>& each) {
  ExitCode first = ExitCode::kOk;
  for (const std::string& name : names) {
    const ExitCode code = session.Finish(each(name));
    if (first == ExitCode::kOk) first = code;
  }
  return first;
}

ExitCode WatchList(Session& session, const v1::WatchRequest& subject,
                   const std::function<absl::Status()>& show) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return session.Finish(client.status());
  for (;;) {
    bool shown = false;
    absl::Status problem;
    // The watch starts before the list is read, so that no change falls between the two.
    const auto see = [&](const v1::WatchResponse& response) {
      if (shown) return response.events().empty();
      shown = true;
      if (session.io().out_is_terminal) session.out() << kClearScreen;
      problem = show();
      session.out().flush();
      return problem.ok();
    };
    const absl::Status status = (*client)->Watch(subject, see);
    if (!problem.ok() || !status.ok()) return session.Finish(problem.ok() ? status : problem);
    session.io().environment.sleeper->Sleep(kWatchInterval);
    if (!session.io().out_is_terminal) session.out() << "\n";
  }
}

}  // namespace berth
