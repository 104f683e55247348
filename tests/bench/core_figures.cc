#include "tests/bench/core_figures.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

namespace berth::bench {
namespace {

// One "KEY VALUE" per line, with all digits.
std::string Written(const Figures& figures) {
  std::ostringstream text;
  text.precision(17);
  for (const auto& [key, value] : figures) text << key << ' ' << value << '\n';
  return text.str();
}

Figures Read(const std::string& written) {
  std::istringstream text(written);
  Figures figures;
  std::string key;
  for (double value = 0; text >> key >> value;) figures[key] = value;
  return figures;
}

void WriteAll(int file, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = write(file, text.data() + done, text.size() - done);
    if (wrote <= 0) Fail("cannot write the figures");
    done += static_cast<size_t>(wrote);
  }
}

std::string ReadAll(int file) {
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(file, buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

}  // namespace

Figures InOwnProcess(const std::function<Figures()>& measure) {
  int ends[2];
  if (pipe(ends) != 0) Fail("cannot create a pipe");
  const pid_t child = fork();
  if (child < 0) Fail("cannot fork");
  if (child == 0) {
    close(ends[0]);
    WriteAll(ends[1], Written(measure()));
    _exit(0);
  }
  close(ends[1]);
  const std::string written = ReadAll(ends[0]);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) Fail("a run of the core failed");
  return Read(written);
}

std::vector<Figures> Runs(const Options& options, int runs,
                          const std::function<Figures()>& measure) {
  std::vector<Figures> all;
  for (int run = 0; run < (options.quick ? 1 : runs); ++run) all.push_back(InOwnProcess(measure));
  return all;
}

Row FiguresRow(std::string name, std::string unit, const std::string& value,
               const std::vector<Figures>& runs) {
  std::map<std::string, std::vector<double>> values;
  for (const Figures& figures : runs) {
    for (const auto& [key, figure] : figures) values[key].push_back(figure);
  }
  Row row = MedianRow(std::move(name), std::move(unit), values.at(value));
  for (const auto& [key, all] : values) {
    if (key != value) row.numbers[key] = Median(all);
  }
  return row;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double OwnResidentMib() {
  std::ifstream statm("/proc/self/statm");
  double size_pages = 0, resident_pages = 0;
  statm >> size_pages >> resident_pages;
  return resident_pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1024.0 * 1024.0);
}

}  // namespace berth::bench
