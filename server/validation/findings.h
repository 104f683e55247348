// Results of validation: every violation of a request at once, each with its field path.
//
// Paths are built only if something is wrong: a FieldPath is a chain of stack objects, and free for
// valid requests.
#ifndef BERTH_SERVER_VALIDATION_FINDINGS_H_
#define BERTH_SERVER_VALIDATION_FINDINGS_H_

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "support/errors.h"

namespace berth {

// "jobs[3].spec.groups[1].labels["team"]". Each object must outlive those made from it; so parents
// must not be temporaries.
class FieldPath {
 public:
  FieldPath() = default;  // the request itself
  FieldPath(const FieldPath& parent, absl::string_view field, int index = -1)
      : parent_(&parent), field_(field), index_(index) {}
  FieldPath(const FieldPath&& parent, absl::string_view field, int index = -1) = delete;
  // An entry of a map.
  FieldPath(const FieldPath& parent, absl::string_view field, absl::string_view key)
      : parent_(&parent), field_(field), key_(key), has_key_(true) {}
  FieldPath(const FieldPath&& parent, absl::string_view field, absl::string_view key) = delete;
  FieldPath(const FieldPath& parent, absl::string_view field, const std::string& key)
      : FieldPath(parent, field, absl::string_view(key)) {}

  std::string ToString() const;

 private:
  const FieldPath* parent_ = nullptr;
  absl::string_view field_;
  int index_ = -1;
  absl::string_view key_;
  bool has_key_ = false;
};

// Collects violations. The status code is that of the gravest one, so a request that is both
// invalid and uses an unimplemented feature is INVALID_ARGUMENT. The details list all violations,
// the gravest first.
class Findings {
 public:
  static constexpr size_t kMax =
      200;  // later ones are not recorded; a request this wrong needs no more

  // INVALID_ARGUMENT: what is wrong, and what would be right.
  void Invalid(const FieldPath& path, std::string description) {
    Add(kInvalid, path, std::move(description));
  }
  // NOT_FOUND: names something that does not exist.
  void Missing(const FieldPath& path, std::string description) {
    Add(kMissing, path, std::move(description));
  }
  // FAILED_PRECONDITION: valid by itself, but not in the current state.
  void Refused(const FieldPath& path, std::string description) {
    Add(kRefused, path, std::move(description));
  }
  // UNIMPLEMENTED: a known field without an implementation. `feature` begins the sentence.
  void Unbuilt(const FieldPath& path, absl::string_view feature);

  bool ok() const { return count_ == 0; }
  size_t size() const { return count_; }
  absl::Status ToStatus() const;

 private:
  enum Gravity { kInvalid, kMissing, kRefused, kUnbuilt, kGravities };
  void Add(Gravity gravity, const FieldPath& path, std::string description);

  size_t count_ = 0;
  std::array<std::vector<Violation>, kGravities> found_;
};

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_FINDINGS_H_
