#include "support/man_page.h"

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "support/version.h"

namespace berth {
namespace {

constexpr size_t kLineBytes = 76;

std::string RoffText(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\\", "\\e"},
                                    {"-", "\\-"},
                                    {"'", "\\(aq"},
                                    {"`", "\\(ga"},
                                    {"^", "\\(ha"},
                                    {"~", "\\(ti"}});
}

std::string Bold(absl::string_view text) { return absl::StrCat("\\fB", RoffText(text), "\\fR"); }
std::string Italic(absl::string_view text) { return absl::StrCat("\\fI", RoffText(text), "\\fR"); }

// One paragraph of text: short lines, and each sentence begins a line.
std::string Paragraph(absl::string_view text) {
  std::string out, line;
  const auto end_line = [&] {
    if (line.empty()) return;
    absl::StrAppend(&out, line[0] == '.' ? "\\&" : "", line, "\n");
    line.clear();
  };
  for (absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    const std::string escaped = RoffText(word);
    if (line.size() + escaped.size() + 1 > kLineBytes) end_line();
    absl::StrAppend(&line, line.empty() ? "" : " ", escaped);
    if (absl::EndsWith(word, ".") || absl::EndsWith(word, "?")) end_line();
  }
  end_line();
  return out;
}

// "DURATION", "table|json", or the kind of value.
std::string ValueName(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t colon = type.find(':');
  const std::string check = colon == std::string::npos ? type : type.substr(colon + 1);
  const size_t open = check.find('{'), close = check.find('}');
  if (open == std::string::npos || close == std::string::npos) {
    const bool plain = check.find_first_of(" []()") == std::string::npos && !check.empty();
    return plain ? check : type.substr(0, colon);
  }
  return absl::StrReplaceAll(check.substr(open + 1, close - open - 1), {{",", "|"}});
}

std::string OptionNames(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back(Bold("-" + name));
  for (const std::string& name : option.get_lnames()) names.push_back(Bold("--" + name));
  std::string text = absl::StrJoin(names, ", ");
  if (option.get_items_expected_max() > 0) absl::StrAppend(&text, " ", Italic(ValueName(option)));
  return text;
}

std::vector<const CLI::Option*> OptionsOf(const CLI::App& app, bool positional) {
  std::vector<const CLI::Option*> options;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() == positional && !option->get_group().empty())
      options.push_back(option);
  }
  return options;
}

std::vector<const CLI::App*> CommandsOf(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) commands.push_back(command);
  }
  return commands;
}

void AddItem(const std::string& head, absl::string_view text, std::string* out) {
  absl::StrAppend(out, ".TP\n", head, "\n", text.empty() ? "\\&\n" : Paragraph(text));
}

void AddOptions(const CLI::App& app, std::string* out) {
  for (const CLI::Option* option : OptionsOf(app, true))
    AddItem(Italic(option->get_name()), option->get_description(), out);
  for (const CLI::Option* option : OptionsOf(app, false)) {
    std::string text = option->get_description();
    if (!option->get_envname().empty())
      absl::StrAppend(&text, "; environment: ", option->get_envname());
    AddItem(OptionNames(*option), text, out);
  }
}

// The arguments after the command in the synopsis.
std::string Arguments(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : OptionsOf(app, true)) {
    const bool many = option->get_items_expected_max() > 1;
    const std::string name = absl::StrCat(Italic(option->get_name()), many ? "..." : "");
    absl::StrAppend(&text, " ", option->get_required() ? name : absl::StrCat("[", name, "]"));
  }
  if (!CommandsOf(app).empty()) absl::StrAppend(&text, " ", Italic("COMMAND"));
  absl::StrAppend(&text, " [", Italic("OPTIONS"), "]");
  return text;
}

void AddCommand(const CLI::App& command, const std::string& synopsis, std::string* out) {
  const std::string line = absl::StrCat(synopsis, " ", command.get_name());
  absl::StrAppend(out, ".SS ", Bold(line), Arguments(command), "\n",
                  Paragraph(command.get_description()));
  AddOptions(command, out);
  for (const CLI::App* below : CommandsOf(command)) AddCommand(*below, line, out);
}

void AddCommands(const CLI::App& app, const ManPageOptions& options, std::string* out) {
  const std::vector<const CLI::App*> commands = CommandsOf(app);
  if (commands.empty()) return;
  absl::StrAppend(out, ".SH COMMANDS\n");
  for (const CLI::App* command : commands) {
    if (options.nested) {
      AddCommand(*command, options.synopsis, out);
    } else {
      AddItem(Bold(command->get_name()), command->get_description(), out);
    }
  }
}

// "berth(1)" in bold and plain.
void AddSeeAlso(const std::vector<std::string>& pages, std::string* out) {
  if (pages.empty()) return;
  absl::StrAppend(out, ".SH SEE ALSO\n");
  for (size_t i = 0; i < pages.size(); ++i) {
    const size_t open = pages[i].find('(');
    absl::StrAppend(out, ".BR ", RoffText(pages[i].substr(0, open)), " ", pages[i].substr(open),
                    i + 1 < pages.size() ? " ,\n" : "\n");
  }
}

}  // namespace

std::string ManPage(const CLI::App& app, const ManPageOptions& options) {
  std::string out = absl::StrCat(".TH ", RoffText(absl::AsciiStrToUpper(options.name)), " ",
                                 options.section, " ", options.date, " \"Berth ", kBerthVersion,
                                 "\" \"Berth\"\n.SH NAME\n", RoffText(options.name), " \\-\n",
                                 Paragraph(absl::StripSuffix(app.get_description(), ".")),
                                 ".SH SYNOPSIS\n", Bold(options.synopsis), Arguments(app), "\n");
  if (!OptionsOf(app, true).empty() || !OptionsOf(app, false).empty()) {
    absl::StrAppend(&out, ".SH OPTIONS\n");
    AddOptions(app, &out);
  }
  AddCommands(app, options, &out);
  if (!app.get_footer().empty()) absl::StrAppend(&out, ".SH NOTES\n", Paragraph(app.get_footer()));
  AddSeeAlso(options.see_also, &out);
  return out;
}

std::string ManPageDate() {
  absl::Time time = absl::Now();
  const char* epoch = std::getenv("SOURCE_DATE_EPOCH");
  int64_t seconds = 0;
  if (epoch != nullptr && absl::SimpleAtoi(epoch, &seconds)) time = absl::FromUnixSeconds(seconds);
  return absl::FormatTime("%Y-%m-%d", time, absl::UTCTimeZone());
}

}  // namespace berth
