#include "clients/cli/man_command.h"

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cli/command.h"
#include "support/man_page.h"
#include "support/nearest.h"

namespace berth {
namespace {

struct ManualPage {
  std::string name;  // "berth-job"
  std::string text;
};

// One page for the program, and one for each of its commands.
std::vector<ManualPage> Pages(const CLI::App& app) {
  ManPageOptions options{.name = "berth", .synopsis = "berth", .date = ManPageDate()};
  std::vector<ManualPage> pages;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    ManPageOptions of_command = options;
    of_command.name = absl::StrCat("berth-", command->get_name());
    of_command.synopsis = absl::StrCat("berth ", command->get_name());
    of_command.see_also = {"berth(1)"};
    pages.push_back({of_command.name, ManPage(*command, of_command)});
    options.see_also.push_back(absl::StrCat(of_command.name, "(1)"));
  }
  options.nested = false;
  for (const char* other : {"berth-sim(1)", "berth-agent(8)", "berthd(8)"})
    options.see_also.emplace_back(other);
  pages.insert(pages.begin(), {options.name, ManPage(app, options)});
  return pages;
}

ExitCode WritePages(Session& session, const std::vector<ManualPage>& pages,
                    const std::string& directory) {
  for (const ManualPage& page : pages) {
    const std::string path = absl::StrCat(directory, "/", page.name, ".1");
    std::ofstream file(path);
    file << page.text;
    file.close();
    if (file.good()) continue;
    session.err() << "berth: --directory: cannot write " << path << "\n";
    return ExitCode::kInvalid;
  }
  return ExitCode::kOk;
}

ExitCode Show(Session& session, const std::vector<ManualPage>& pages, const std::string& command) {
  const std::string name = command.empty() ? "berth" : absl::StrCat("berth-", command);
  std::vector<std::string> known;
  for (const ManualPage& page : pages) {
    if (page.name == name) {
      session.out() << page.text;
      return ExitCode::kOk;
    }
    if (page.name != "berth") known.push_back(page.name.substr(6));
  }
  session.err() << "berth: " << UnknownWord("unknown command", command, known) << "\n";
  return ExitCode::kUsage;
}

}  // namespace

void AddManCommand(CLI::App& app, Session& session) {
  auto command = std::make_shared<std::string>();
  auto directory = std::make_shared<std::string>();
  CLI::App* man = AddCommand(app, session, "man", "print a manual page: berth man job | man -l -",
                             [&app, command, directory](Session& s) {
                               const std::vector<ManualPage> pages = Pages(app);
                               return directory->empty() ? Show(s, pages, *command)
                                                         : WritePages(s, pages, *directory);
                             });
  man->add_option("COMMAND", *command, "command of berth; default: the overview");
  man->add_option("--directory", *directory, "write all pages into this folder instead");
}

}  // namespace berth
