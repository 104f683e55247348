// Manual pages of programs, made of what their --help is made of.
#ifndef BERTH_SUPPORT_MAN_PAGE_H_
#define BERTH_SUPPORT_MAN_PAGE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace berth {

struct ManPageOptions {
  std::string name;           // of the page: "berth-job"
  std::string synopsis = {};  // what is typed: "berth job"
  int section = 1;
  std::string date;                        // "2026-11-24"
  bool nested = true;                      // tells the commands below in full; else only names them
  std::vector<std::string> see_also = {};  // "berth(1)"
};

// In the macros of man(7), without a line that groff -ww or mandoc -T lint finds fault with.
std::string ManPage(const CLI::App& app, const ManPageOptions& options);

// The day of SOURCE_DATE_EPOCH, for builds that are to be repeatable; else today.
std::string ManPageDate();

}  // namespace berth

#endif  // BERTH_SUPPORT_MAN_PAGE_H_
