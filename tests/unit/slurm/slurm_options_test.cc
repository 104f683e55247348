// Options: parsing, refusals, and the tables themselves.
#include <catch2/catch.hpp>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "clients/slurm/option_tables.h"
#include "clients/slurm/script.h"

namespace berth {
namespace {

using Words = std::vector<std::string>;

std::string Shown(const absl::StatusOr<SlurmArguments>& arguments) {
  if (!arguments.ok()) return std::string(arguments.status().message());
  std::string text;
  for (const GivenOption& given : arguments->options)
    text += std::string(given.option->name) + "=" + given.value + " ";
  for (const std::string& operand : arguments->operands) text += "[" + operand + "]";
  return text;
}

TEST_CASE("slurm options: every spelling") {
  const auto parse = [](const Words& words) {
    return Shown(ParseSlurmArguments(SbatchCommand(), words));
  };
  CHECK(parse({"-N2", "-n", "4", "--time=5", "--job-name", "x", "s.sh", "-a", "b"}) ==
        "nodes=2 ntasks=4 time=5 job-name=x [s.sh][-a][b]");
  CHECK(parse({"-HQ", "--nice", "--nice=3", "--", "-x"}) == "hold= quiet= nice= nice=3 [-x]");
  CHECK(parse({"--job=x"}) == "job-name=x ");  // the only beginning
  CHECK(parse({"--gpus-per-n=1"}) == "gpus-per-node=1 ");
  CHECK(parse({"--gpus=1"}) == "gpus=1 ");  // in full, although others begin so
  CHECK(absl::StrContains(parse({"--gpus-p=1"}), "write it in full"));
  CHECK(parse({"--hold=1"}) == "--hold takes no value");
  CHECK(parse({"-t"}) == "-t, --time=VALUE needs a value");
  CHECK(absl::StrContains(parse({"--tiem=1"}), "did you mean --time?"));
  CHECK(absl::StrContains(parse({"-%"}), "unknown option -%"));
}

TEST_CASE("slurm options: commands without a command of the user take options anywhere") {
  CHECK(Shown(ParseSlurmArguments(ScancelCommand(), {"12", "--signal", "TERM"})) ==
        "signal=TERM [12]");
}

TEST_CASE("slurm options: the variables of the environment") {
  const auto read = [](const std::string& name) {
    return Shown(OptionsOfVariables(SbatchCommand(), {{name, "7"}, {"OTHER", "x"}}));
  };
  CHECK(read("SBATCH_TIMELIMIT") == "time=7 ");
  CHECK(read("SBATCH_ARRAY_INX") == "array=7 ");
  CHECK(read("SBATCH_NOSUCH") == "the variable SBATCH_NOSUCH is not known; unset it");
}

TEST_CASE("slurm options: what is refused, and what has no meaning, is said by name") {
  const auto arguments = ParseSlurmArguments(SbatchCommand(), {"--wckey=x", "--exclusive", "-t1"});
  REQUIRE(arguments.ok());
  std::ostringstream err;
  CHECK_FALSE(AcceptOptions(SbatchCommand(), *arguments, err));
  CHECK(absl::StrContains(err.str(), "sbatch: --wckey has no meaning here: "));
  CHECK(absl::StrContains(err.str(), "sbatch: error: --exclusive is not built: ask for all CPUs"));
}

TEST_CASE("slurm options: each table is without contradictions, and every option says something") {
  for (const SlurmCommand* command : AllSlurmCommands()) {
    std::set<std::string> names, letters;
    for (const SlurmOption& option : command->options) {
      INFO(command->name << " --" << option.name << " -" << option.letter);
      CHECK(names.insert(option.name).second);
      if (option.letter != 0) CHECK(letters.insert(std::string(1, option.letter)).second);
      CHECK(std::string(option.text).size() > 3);
    }
    CHECK(absl::StrContains(SlurmOptionTable(*command), "| refused |"));
  }
}

TEST_CASE("slurm script: directives end at the first command") {
  const auto options = OptionsOfScript(SbatchCommand(),
                                       "#!/bin/sh\n# comment\n#SBATCH -J 'a b' # name\n\n"
                                       "#SBATCH --time=5 -N 2\n##SBATCH -c 3\n#SBATCHx -c 3\n"
                                       "echo\n#SBATCH -c 4\n");
  CHECK(Shown(options) == "job-name=a b time=5 nodes=2 ");
  CHECK(options->options[1].source == "script line 5: --time");
  CHECK(OptionsOfScript(SbatchCommand(), "#!/bin/sh\n#SBATCH x\n").status().message() ==
        "script line 2: \"x\" is no option");
  CHECK(OptionsOfScript(SbatchCommand(), "#!/bin/sh\n#SBATCH -J 'x\n").status().message() ==
        "script line 2: a quote is not closed");
}

TEST_CASE("slurm script: what is no script") {
  CHECK(CheckScript("#!/bin/sh\n").ok());
  CHECK_FALSE(CheckScript("echo\n").ok());
  CHECK_FALSE(CheckScript("#!/bin/sh\r\n").ok());
  CHECK_FALSE(CheckScript(absl::string_view("#!/bin/sh\n\0", 11)).ok());
}

}  // namespace
}  // namespace berth
