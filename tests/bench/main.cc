// berth-bench [NAME...]: see bench.h.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "tests/bench/bench.h"

namespace berth::bench {
namespace {

std::string OwnFolder() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "." : self.parent_path().string();
}

bool Wanted(const std::vector<std::string>& names, const std::string& name) {
  if (names.empty()) return true;
  for (const std::string& wanted : names) {
    if (wanted == name) return true;
  }
  return false;
}

void CheckNames(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    bool known = false;
    for (const Benchmark& benchmark : AllBenchmarks()) known |= benchmark.name == name;
    if (!known) Fail("no benchmark is called \"" + name + "\": see --list");
  }
}

void List() {
  for (const Benchmark& benchmark : AllBenchmarks()) {
    std::printf("%-18s %s\n", benchmark.name.c_str(), benchmark.what.c_str());
  }
}

void RunAll(const std::vector<std::string>& names, const Options& options) {
  for (const Benchmark& benchmark : AllBenchmarks()) {
    if (!Wanted(names, benchmark.name)) continue;
    for (Row row : benchmark.run(options)) {
      if (options.quick) row.texts["note"] = "--quick: not a measurement";
      std::printf("%s\n", ToJson(row).c_str());
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) {
  berth::bench::Options options;
  std::vector<std::string> names;
  bool list = false;
  CLI::App app("Measures a Berth installation; prints one JSON object a line.");
  app.add_option("NAME", names, "benchmarks to run; default: all");
  app.add_flag("--list", list, "list the benchmarks");
  app.add_flag("--quick", options.quick, "do a hundredth of the work, to check that it works");
  app.add_option("--case", options.only, "run only this case, for benchmarks with cases");
  options.programs = berth::bench::OwnFolder();
  app.add_option("--programs", options.programs, "folder of berthd and berth-agent")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (!options.only.empty() && names.empty()) {
    std::fprintf(stderr, "berth-bench: --case needs the NAME of a benchmark\n");
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  berth::bench::CheckNames(names);
  if (list) {
    berth::bench::List();
  } else {
    berth::bench::RunAll(names, options);
  }
  return 0;
}
