// NOT_FOUND for names that nobody uses.
#ifndef BERTH_SERVER_VALIDATION_NO_SUCH_H_
#define BERTH_SERVER_VALIDATION_NO_SUCH_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/validation/text.h"

namespace berth {

inline absl::Status NoSuchJob(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("there is no job ", Quoted(name)));
}
inline absl::Status NoSuchNode(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("there is no node ", Quoted(name)));
}
inline absl::Status NoSuchQueue(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("there is no queue ", Quoted(name)));
}

inline absl::Status NoSuchHyperNode(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("there is no HyperNode ", Quoted(name)));
}

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_NO_SUCH_H_
