// The head of an HTTP request: what of it is read lies within it.
#include "core/base/check.h"
#include "support/http/http_request.h"
#include "tests/fuzz/target.h"

namespace berth::fuzz {

void FuzzOne(absl::string_view input) {
  const absl::string_view head = HttpHeadOf(input);
  BERTH_CHECK(head.size() <= input.size());
  BERTH_CHECK(HttpHeadOf(head) == head);
  for (const absl::string_view text : {head, input}) {
    const auto request = ParseHttpHead(text);
    if (!request.has_value()) continue;
    BERTH_CHECK(request->path[0] == '/');
    BERTH_CHECK(request->method.size() + request->path.size() < text.size());
  }
}

}  // namespace berth::fuzz
