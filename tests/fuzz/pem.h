// PEM of the DER that a fuzzer makes, which seldom makes base64.
#ifndef BERTH_TESTS_FUZZ_PEM_H_
#define BERTH_TESTS_FUZZ_PEM_H_

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace berth::fuzz {

inline std::string Pem(absl::string_view type, absl::string_view der) {
  std::string text = absl::StrCat("-----BEGIN ", type, "-----\n");
  const std::string base64 = absl::Base64Escape(der);
  for (size_t at = 0; at < base64.size(); at += 64) {
    absl::StrAppend(&text, base64.substr(at, 64), "\n");
  }
  return absl::StrCat(text, "-----END ", type, "-----\n");
}

}  // namespace berth::fuzz

#endif  // BERTH_TESTS_FUZZ_PEM_H_
