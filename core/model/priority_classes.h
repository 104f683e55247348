// Priority classes: priorities of jobs by name. A job takes what its class says when it is
// submitted (server/commands/job_class.h); changes of classes change no job.
//
//   {set: high 1000}, then {remove: high, set: higher 2000}  ->  only "higher"
#ifndef BERTH_CORE_MODEL_PRIORITY_CLASSES_H_
#define BERTH_CORE_MODEL_PRIORITY_CLASSES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace berth {

struct PriorityClass {
  std::string name;
  int32_t value = 0;
  bool preempts = true;         // as JobSpec::preempts
  bool global_default = false;  // of jobs that name neither class nor priority
  std::string description;
  bool operator==(const PriorityClass&) const = default;
};

// One change, as it is logged. Applied in the order of the fields.
struct PriorityClassChange {
  std::vector<std::string> remove;
  std::vector<PriorityClass> set;  // created or replaced
  bool operator==(const PriorityClassChange&) const = default;
};

class PriorityClasses {
 public:
  static constexpr size_t kMost = 256;
  static constexpr size_t kMaxName = 253;          // bytes
  static constexpr size_t kMaxDescription = 1024;  // bytes
  static constexpr int32_t kMaxValue = 1'000'000;  // and the least is -kMaxValue

  // INVALID_ARGUMENT: a name, a value or a description; NOT_FOUND: one to remove;
  // FAILED_PRECONDITION: a second global default; RESOURCE_EXHAUSTED: too many.
  absl::Status Check(const PriorityClassChange& change) const;
  // Requires a change that Check accepts.
  void Apply(const PriorityClassChange& change);
  // The change that makes these classes out of none, sorted by name.
  PriorityClassChange AsChange() const;

  const PriorityClass* Find(absl::string_view name) const;  // nullptr if there is none
  const PriorityClass* GlobalDefault() const;               // likewise
  const std::map<std::string, PriorityClass, std::less<>>& all() const { return classes_; }

  bool operator==(const PriorityClasses&) const = default;

 private:
  std::map<std::string, PriorityClass, std::less<>> classes_;
  std::string default_;  // its name; "" if there is none
};

}  // namespace berth

#endif  // BERTH_CORE_MODEL_PRIORITY_CLASSES_H_
