// "worker-3": the third task of group worker, counted from 0.
#ifndef BERTH_OFFLINE_SIM_TASK_NAMES_H_
#define BERTH_OFFLINE_SIM_TASK_NAMES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/model/job.h"

namespace berth {

// The reverse of TaskNameOf (server/convert/job.h). `groups`: of a Job or a JobSpec.
template <class Groups>
std::optional<uint32_t> FindTask(const Groups& groups, absl::string_view name) {
  uint32_t first = 0;
  for (const auto& group : groups) {
    const auto replicas = static_cast<uint32_t>(group.replicas);
    for (uint32_t i = 0; i < replicas && name.substr(0, group.name.size()) == group.name; ++i) {
      if (name == absl::StrCat(group.name, "-", i)) return first + i;
    }
    first += replicas;
  }
  return std::nullopt;
}

}  // namespace berth

#endif  // BERTH_OFFLINE_SIM_TASK_NAMES_H_
