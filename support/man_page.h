// Manual pages of programs, generated from their --help texts.
#ifndef BERTH_SUPPORT_MAN_PAGE_H_
#define BERTH_SUPPORT_MAN_PAGE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace berth {

struct ManPageOptions {
  std::string name;           // of the page, such as "berth-job"
  std::string synopsis = {};  // as typed, such as "berth job"
  int section = 1;
  std::string date;                        // such as "2026-11-24"
  bool nested = true;                      // describe subcommands in full; else only list them
  std::vector<std::string> see_also = {};  // such as "berth(1)"
};

// Uses man(7) macros; groff -ww and mandoc -T lint accept it without warnings.
std::string ManPage(const CLI::App& app, const ManPageOptions& options);

// The date in SOURCE_DATE_EPOCH, for reproducible builds; else today.
std::string ManPageDate();

}  // namespace berth

#endif  // BERTH_SUPPORT_MAN_PAGE_H_
