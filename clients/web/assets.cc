#include "clients/web/assets.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace berth::web {
namespace {

constexpr char kIndex[] = "/index.html";
// First parts of the pages' paths (page/src/routes.ts).
constexpr absl::string_view kPagePaths[] = {"",     "queues",   "jobs",     "job",    "nodes",
                                            "node", "topology", "timeline", "sign-in"};

bool IsPage(absl::string_view path) {
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  return parts.size() >= 2 && parts.size() <= 3 &&
         std::find(std::begin(kPagePaths), std::end(kPagePaths), parts[1]) != std::end(kPagePaths);
}

WebAnswer PlainText(int code, const std::string& text) {
  WebAnswer answer{.code = code, .body = text + "\n", .headers = {}, .stream = nullptr};
  answer.content_type = "text/plain; charset=utf-8";
  return answer;
}

}  // namespace

WebAnswer AnswerWithAsset(const WebRequest& request) {
  const absl::Span<const Asset> assets = Assets();
  if (assets.empty() && IsPage(request.path)) {
    return PlainText(
        404, "This berth-web was built without the page: npm was missing. The API is here.");
  }
  const std::string path = IsPage(request.path) ? kIndex : request.path;
  const auto found = std::find_if(assets.begin(), assets.end(),
                                  [&](const Asset& asset) { return asset.path == path; });
  if (found == assets.end()) return PlainText(404, "not found");
  const bool gzip = absl::StrContains(request.Header("accept-encoding"), "gzip");
  WebAnswer answer;
  answer.body = std::string(gzip ? found->gzip : found->text);
  answer.content_type = std::string(found->content_type);
  if (gzip) answer.headers.emplace_back("Content-Encoding", "gzip");
  answer.headers.emplace_back("Vary", "Accept-Encoding");
  answer.headers.emplace_back("Cache-Control",
                              found->lasting ? "public, max-age=31536000, immutable" : "no-cache");
  return answer;
}

}  // namespace berth::web
