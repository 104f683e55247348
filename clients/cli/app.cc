#include "clients/cli/app.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "clients/cli/command.h"
#include "clients/cli/command_walk.h"
#include "clients/cli/completion.h"
#include "clients/cli/man_command.h"
#include "clients/cli/output_formats.h"
#include "clients/cli/topology_import_commands.h"
#include "clients/cli/verb_first.h"
#include "support/nearest.h"
#include "support/version.h"
#include "support/visible.h"

namespace berth {
namespace {

constexpr char kFirstSteps[] = R"(
First steps:
    berth cluster info                                    the server, its nodes and their resources
    berth submit --queue research --gpus 8 -- train.py    a job from options
    berth submit job.yaml                                 a job from a manifest
    berth job list                                        what runs, and why the rest waits
    berth job explain NAME                                what would start a pending job
    berth job logs NAME -f                                the output of a task, as it is written
)";

constexpr char kFooter[] = R"(
Exit codes: 0 success; 1 refused by the server; 2 invalid command line; 3 not found;
4 invalid manifest or value; 5 server unreachable or overloaded; 6 not implemented;
10 the awaited job did not succeed; 11 it did not end before --timeout.)";

const std::map<std::string, Format> kFormats = {{"table", Format::kTable}, {"wide", Format::kWide},
                                                {"json", Format::kJson},   {"yaml", Format::kYaml},
                                                {"name", Format::kName},   {"csv", Format::kCsv}};
const std::map<std::string, ColorMode> kColorModes = {
    {"auto", ColorMode::kAuto}, {"always", ColorMode::kAlways}, {"never", ColorMode::kNever}};

template <class Value>
std::vector<std::string> Keys(const std::map<std::string, Value>& map) {
  std::vector<std::string> keys;
  for (const auto& entry : map) keys.push_back(entry.first);
  return keys;
}

void AddGlobalOptions(CLI::App& app, GlobalOptions& options) {
  const char* global = "Global options";
  ClientOptions& client = options.client;
  app.add_option("--server", client.server,
                 "HOST:PORT, or several with commas; default 127.0.0.1:7070")
      ->envname("BERTH_SERVER")
      ->group(global);
  app.add_option("--tls-certificate", client.tls.certificate, "PEM file: client certificate")
      ->envname("BERTH_TLS_CERTIFICATE")
      ->group(global);
  app.add_option("--tls-key", client.tls.key, "PEM file: key of the client certificate")
      ->envname("BERTH_TLS_KEY")
      ->group(global);
  app.add_option("--tls-ca", client.tls.ca, "PEM file: CA certificates to verify the server with")
      ->envname("BERTH_TLS_CA")
      ->group(global);
  app.add_option("--auth-socket", options.auth_socket,
                 "socket of berth-authd, which gives certificates, or \"off\"; default "
                 "/run/berth/auth.sock if it exists and the server is on another machine; not used "
                 "with --tls-certificate, --tls-key and --tls-ca")
      ->envname("BERTH_AUTH_SOCKET")
      ->group(global);
  app.add_option("--auth", options.auth,
                 "https URL of berth-authd on another machine, for berth login")
      ->envname("BERTH_AUTH")
      ->group(global);
  app.add_option_function<std::string>(
         "--request-timeout",
         [&client](const std::string& text) { client.timeout = DurationFrom(text); },
         "limit for one request including retries; default 30s")
      ->check(kIsDuration)
      ->group(global);
  app.add_flag(
         "--unsynced", client.unsynced,
         "also show what is not on the server's disk yet; reads then do not wait for a slow disk")
      ->group(global);
  app.add_flag("--stale", client.stale,
               "also take the answer of a standby, which may be behind the leader; only to read")
      ->group(global);
  app.add_option_function<std::string>(
         "--output,-o",
         [&options](const std::string& name) {
           options.format = kFormats.at(name);
           options.format_given = true;
         },
         "table, wide, json, yaml, name or csv")
      ->check(CLI::IsMember(Keys(kFormats)))
      ->group(global);
  app.add_flag("--no-headers", options.no_headers, "omit the header line of tables")->group(global);
  app.add_option_function<std::string>(
         "--color", [&options](const std::string& name) { options.color = kColorModes.at(name); },
         "auto, always or never")
      ->check(CLI::IsMember(Keys(kColorModes)))
      ->group(global);
}

// The unknown command with the nearest known one; "" if the error is another one.
std::string UnknownCommand(const CLI::App& app) {
  const CLI::App* place = &app;
  while (!place->get_subcommands().empty()) place = place->get_subcommands().front();
  std::vector<std::string> known;
  for (const CLI::App* command : place->get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(command->get_name());
  }
  const std::vector<std::string> left = app.remaining(true);
  if (known.empty() || left.empty() || left.front().empty() || left.front()[0] == '-') return "";
  return UnknownWord("unknown command", left.front(), known);
}

// The parsed command, or the noun that lacks its verb.
const CLI::App& Deepest(const CLI::App& app) {
  const CLI::App* place = &app;
  while (!place->get_subcommands().empty()) place = place->get_subcommands().front();
  return *place;
}

// "berth" or "berth job" alone: the list of commands says more than an error.
bool WantsCommand(const CLI::App& app, const CLI::ParseError& error) {
  const auto commands = Deepest(app).get_subcommands([](const CLI::App*) { return true; });
  return dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !commands.empty();
}

// The parsed command, such as "job list".
std::string CommandOf(const CLI::App& app) {
  std::string command;
  for (const CLI::App* place = &app; !place->get_subcommands().empty();) {
    place = place->get_subcommands().front();
    command += (command.empty() ? "" : " ") + place->get_name();
  }
  return command;
}

// "berth job list --help"
std::string HelpOf(const CLI::App& app) {
  const std::string command = CommandOf(app);
  return absl::StrCat("berth ", command, command.empty() ? "" : " ", "--help");
}

// CLI11 says "--limit: 1 required INT missing" if the value is missing.
std::string MessageOf(const CLI::ParseError& error) {
  const std::string text = error.what();
  const size_t colon = text.find(": 1 required ");
  const bool no_value = dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr;
  return no_value && colon != std::string::npos ? text.substr(0, colon) + ": needs a value" : text;
}

// "--gpu=8" -> "--gpu"
std::string OptionWord(const std::string& word) { return word.substr(0, word.find('=')); }

// The options that `place` takes, those of the commands around it included: "--gpus", "-g".
std::vector<std::string> OptionsOf(const CLI::App* place) {
  std::vector<std::string> known;
  for (; place != nullptr; place = place->get_parent()) {
    for (const CLI::Option* option : place->get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
      for (const std::string& name : option->get_snames()) known.push_back("-" + name);
    }
  }
  return known;
}

// The unknown option with the nearest known one; "" if the error is another one.
std::string UnknownOption(const CLI::App& app) {
  for (const std::string& word : app.remaining(true)) {
    if (word.size() < 2 || word[0] != '-') continue;
    const std::string option = OptionWord(word);
    const std::string nearest =
        option.size() > 2 ? NearestWord(option, OptionsOf(&Deepest(app))) : "";
    return absl::StrCat("unknown option ", option, "; ",
                        nearest.empty() ? absl::StrCat("see ", HelpOf(app))
                                        : absl::StrCat("did you mean ", nearest, "?"));
  }
  return "";
}

int Run(CLI::App& app, const std::vector<std::string>& words, Session& session) {
  absl::StatusOr<std::vector<std::string>> arguments = NounFirst(app, words);
  if (!arguments.ok()) {
    session.err() << "berth: " << arguments.status().message() << "\n";
    return static_cast<int>(ExitCode::kUsage);
  }
  try {
    std::reverse(arguments->begin(), arguments->end());  // CLI11 takes them in reverse order
    app.parse(*arguments);
  } catch (const CLI::ParseError& error) {
    std::string unknown = error.get_exit_code() == 0 ? "" : UnknownCommand(app);
    const bool extras = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    if (unknown.empty() && extras) unknown = UnknownOption(app);
    if (unknown.empty() && WantsCommand(app, error)) {
      session.err() << app.help() << (&Deepest(app) == &app ? kFirstSteps : "");
      return static_cast<int>(ExitCode::kUsage);
    }
    if (!unknown.empty()) {
      session.err() << "berth: " << unknown << "\n";
      return static_cast<int>(ExitCode::kUsage);
    }
    if (error.get_exit_code() != 0) {
      session.err() << "berth: " << MessageOf(error) << "\nberth: see " << HelpOf(app) << "\n";
      return static_cast<int>(ExitCode::kUsage);
    }
    app.exit(error, session.out(), session.err());  // prints the help, or the version
    const bool overview = dynamic_cast<const CLI::CallForHelp*>(&error) != nullptr;
    if (overview && &Deepest(app) == &app) session.out() << kFirstSteps;
    return static_cast<int>(ExitCode::kOk);
  }
  const std::string refusal =
      session.options.format_given ? FormatRefusal(CommandOf(app), session.options.format) : "";
  if (!refusal.empty()) {
    session.err() << "berth: " << refusal << "\n";
    return static_cast<int>(ExitCode::kUsage);
  }
  const ExitCode code = session.action(session);
  session.out().flush();
  if (const std::optional<StaleAnswer> stale = session.stale(); stale.has_value()) {
    session.err() << "berth: as of revision " << stale->revision << ", from the standby "
                  << Visible(stale->server) << "\n";
  }
  if (session.saw_unsynced()) {
    session.Warn(
        "the server's disk is slow: some of this is not on disk yet, and a crash may undo it");
  }
  return static_cast<int>(code);
}

}  // namespace

void AddAllCommands(CLI::App& app, Session& session, const std::vector<std::string>& command) {
  AddSubmitCommands(app, session, command);
  AddRunCommand(app, session, command);
  AddExecCommand(app, session, command);
  AddAttachCommand(app, session);
  AddPortForwardCommand(app, session);
  AddCopyCommand(app, session);
  AddJobCommands(app, session);
  AddExecCommand(*app.get_subcommand("job"), session, command);
  AddQueueCommands(app, session);
  AddPriorityClassCommands(app, session);
  AddNodeCommands(app, session);
  AddHyperNodeCommands(app, session);
  AddClusterCommands(app, session);
  AddAccessCommands(app, session);
  AddLoginCommands(app, session);
  AddUsageCommand(app, session);
  AddAuditCommand(app, session);
  AddTopologyImportCommand(app, session);
  AddMigrateCommand(app, session);
  AddCompletionCommand(app, session);
  AddManCommand(app, session);
}

int RunBerth(const std::vector<std::string>& arguments, const CliIo& io) {
  // The words after the first "--" are the command of a task.
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  const std::vector<std::string> ours(arguments.begin(), dashes);
  const std::vector<std::string> command(dashes == arguments.end() ? dashes : dashes + 1,
                                         arguments.end());

  Session session(io);
  CLI::App app("Berth: batch scheduler for AI clusters", "berth");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.fallthrough();  // global options may appear anywhere
  app.set_version_flag("--version", std::string("berth ") + kBerthVersion);
  AddGlobalOptions(app, session.options);
  AddAllCommands(app, session, command);
  if (!arguments.empty() && arguments.front() == kCompleteCommand) {
    return static_cast<int>(Complete(app, {arguments.begin() + 1, arguments.end()}, session));
  }
  const auto takes = [](const std::string& word) {
    return word == "submit" || word == "run" || word == "exec";
  };
  if (!command.empty() && std::none_of(ours.begin(), ours.end(), takes)) {
    session.err() << "berth: only submit, run and exec take a command after --\n";
    return static_cast<int>(ExitCode::kUsage);
  }
  const std::string hint = SubmitHint(app, dashes == arguments.end() ? ours : arguments);
  if (!hint.empty()) {
    session.err() << "berth: " << hint << "\n";
    return static_cast<int>(ExitCode::kInvalid);
  }
  return Run(app, ours, session);
}

}  // namespace berth
