#include "clients/cli/priority_class_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "clients/cli/manifest.h"

namespace berth {
namespace {

Table TableOf(std::vector<v1::PriorityClass> classes, const Session&) {
  std::stable_sort(
      classes.begin(), classes.end(),
      [](const v1::PriorityClass& a, const v1::PriorityClass& b) { return a.value() > b.value(); });
  Table table({{"NAME"},
               {"VALUE", Column::kRight},
               {"PREEMPTS"},
               {"DEFAULT"},
               {"DESCRIPTION", Column::kShorten}});
  for (const v1::PriorityClass& one : classes) {
    table.AddRow({{one.name()},
                  {absl::StrCat(one.value())},
                  {one.preemption_policy() == v1::NEVER ? "no" : "yes"},
                  {one.global_default() ? "yes" : "-"},
                  {one.description().empty() ? "-" : one.description()}});
  }
  return table;
}

}  // namespace

Shape<v1::PriorityClass> PriorityClassShape() {
  return {"priority-class", TableOf,
          [](const v1::PriorityClass& one) { return WriteManifest(one); }};
}

}  // namespace berth
