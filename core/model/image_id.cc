#include "core/model/image_id.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace berth {
namespace {

constexpr char kDockerHub[] = "docker.io/";
constexpr char kDockerLibrary[] = "library/";  // where images of one part are

// FNV-1a.
class Hash {
 public:
  void Add(absl::string_view text) {
    for (const char c : text) hash_ = (hash_ ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  }
  // With the last step of MurmurHash3, which spreads differences in the last bytes.
  ImageId Value() const {
    uint64_t value = (hash_ ^ hash_ >> 33) * 0xff51afd7ed558ccdu;
    value ^= value >> 33;
    return ImageId{value == 0 ? 1 : value};
  }

 private:
  uint64_t hash_ = 0xcbf29ce484222325u;
};

// A ':' before the last '/' belongs to a port.
size_t TagAt(absl::string_view name) {
  const size_t colon = name.rfind(':');
  if (colon == absl::string_view::npos) return colon;
  return absl::StrContains(name.substr(colon), '/') ? absl::string_view::npos : colon;
}

}  // namespace

ImageId ImageIdOf(absl::string_view name) {
  if (name.empty()) return {};
  const size_t at = name.find('@');
  const absl::string_view tagged = name.substr(0, at);
  const size_t colon = TagAt(tagged);
  absl::string_view path = tagged.substr(0, colon);
  Hash hash;
  if (absl::ConsumePrefix(&path, kDockerHub)) {
    hash.Add(kDockerHub);
    if (!absl::StrContains(path, '/')) hash.Add(kDockerLibrary);
  }
  hash.Add(path);
  if (at != absl::string_view::npos) {
    hash.Add(name.substr(at));
  } else {
    hash.Add(colon == absl::string_view::npos ? ":latest" : tagged.substr(colon));
  }
  return hash.Value();
}

std::vector<ImageId> ImageIdsOf(absl::string_view name, absl::string_view default_host) {
  std::vector<ImageId> ids = {ImageIdOf(name)};
  absl::string_view rest = name;
  if (default_host.empty() || !absl::ConsumePrefix(&rest, default_host) ||
      !absl::ConsumePrefix(&rest, "/")) {
    return ids;
  }
  ids.push_back(ImageIdOf(rest));
  const bool hub = absl::StartsWith(name, kDockerHub);
  if (hub && absl::ConsumePrefix(&rest, kDockerLibrary)) ids.push_back(ImageIdOf(rest));
  return ids;
}

}  // namespace berth
