#include "core/model/priority_classes.h"

#include "absl/strings/str_cat.h"

namespace berth {
namespace {

absl::Status CheckPriorityClass(const PriorityClass& one) {
  const auto wrong = [](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("a priority class: ", what));
  };
  if (one.name.empty() || one.name.size() > PriorityClasses::kMaxName) {
    return wrong("its name has 1 to 253 bytes");
  }
  if (one.value < -PriorityClasses::kMaxValue || one.value > PriorityClasses::kMaxValue) {
    return wrong("its value is -1000000 to 1000000");
  }
  if (one.description.size() > PriorityClasses::kMaxDescription) {
    return wrong("its description has at most 1024 bytes");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PriorityClasses::Check(const PriorityClassChange& change) const {
  PriorityClasses after = *this;
  for (const std::string& name : change.remove) {
    if (after.classes_.erase(name) == 0) {
      return absl::NotFoundError(absl::StrCat("there is no priority class \"", name, "\""));
    }
    if (after.default_ == name) after.default_.clear();
  }
  for (const PriorityClass& one : change.set) {
    if (absl::Status status = CheckPriorityClass(one); !status.ok()) return status;
    if (one.global_default && !after.default_.empty() && after.default_ != one.name) {
      return absl::FailedPreconditionError(
          absl::StrCat("priority class \"", after.default_,
                       "\" is the global default already; set its global_default to false first"));
    }
    after.Apply({.remove = {}, .set = {one}});
  }
  if (after.classes_.size() <= kMost) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("there are at most ", kMost, " priority classes"));
}

void PriorityClasses::Apply(const PriorityClassChange& change) {
  for (const std::string& name : change.remove) {
    classes_.erase(name);
    if (default_ == name) default_.clear();
  }
  for (const PriorityClass& one : change.set) {
    classes_[one.name] = one;
    if (one.global_default) {
      default_ = one.name;
    } else if (default_ == one.name) {
      default_.clear();
    }
  }
}

PriorityClassChange PriorityClasses::AsChange() const {
  PriorityClassChange change;
  for (const auto& [name, one] : classes_) change.set.push_back(one);
  return change;
}

const PriorityClass* PriorityClasses::Find(absl::string_view name) const {
  const auto found = classes_.find(name);
  return found == classes_.end() ? nullptr : &found->second;
}

const PriorityClass* PriorityClasses::GlobalDefault() const {
  return default_.empty() ? nullptr : Find(default_);
}

}  // namespace berth
