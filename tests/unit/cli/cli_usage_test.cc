// Command lines that lack something: what people see who do not know berth yet.
#include <catch2/catch.hpp>

#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("berth alone prints its commands and first steps") {
  Cli cli;
  CHECK(cli.RunBare({}) == 2);
  CHECK(cli.out().empty());
  CHECK_THAT(cli.err(), Contains("Usage: berth [OPTIONS] SUBCOMMAND\n") &&
                            Contains("\nFirst steps:\n    berth cluster info"));
  CHECK(cli.RunBare({"--help"}) == 0);
  CHECK(cli.err().empty());
  CHECK_THAT(cli.out(), Contains("\nFirst steps:\n    berth cluster info"));
}

TEST_CASE("a noun alone prints its verbs") {
  Cli cli;
  CHECK(cli.RunBare({"job"}) == 2);
  CHECK_THAT(cli.err(), Contains("Usage: berth job [OPTIONS] SUBCOMMAND\n") &&
                            Contains("  explain ") && !Contains("First steps"));
  CHECK(cli.RunBare({"job", "--help"}) == 0);
  CHECK_THAT(cli.out(), Contains("  explain ") && !Contains("First steps"));
}

TEST_CASE("errors of the command line name the help that answers them") {
  Cli cli;
  const auto error = [&](const std::vector<std::string>& line) {
    CHECK(cli.RunBare(line) == 2);
    return cli.err();
  };
  CHECK(error({"job", "explain"}) ==
        "berth: NAME is required\nberth: see berth job explain --help\n");
  CHECK(error({"submit", "--gpus", "x", "--", "a"}).find("berth: --gpus: must be") == 0);
  CHECK(error({"job", "list", "--limit"}) ==
        "berth: --limit: needs a value\nberth: see berth job list --help\n");
  CHECK(error({"--output", "xml", "job", "list"}).find("berth: --output: xml not in") == 0);
}

}  // namespace
}  // namespace berth
