// The files of the page, which npm built and cmake put into the program.
#ifndef BERTH_CLIENTS_WEB_ASSETS_H_
#define BERTH_CLIENTS_WEB_ASSETS_H_

#include <cstddef>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "clients/web/web_server.h"

namespace berth::web {

struct Asset {
  absl::string_view path;  // "/app-7F3A.js"
  absl::string_view content_type;
  absl::string_view text;
  absl::string_view gzip;
  bool lasting = false;  // the path changes with the content
};

// Empty if Berth was built without npm.
absl::Span<const Asset> Assets();

// The file of this path. "/" and the pages' paths, such as "/jobs", are the page itself; it decides
// what to show.
WebAnswer AnswerWithAsset(const WebRequest& request);

}  // namespace berth::web

#endif  // BERTH_CLIENTS_WEB_ASSETS_H_
