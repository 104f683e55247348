#include "clients/agent/image_registries.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/agent/fault.h"
#include "clients/agent/images/blob.h"
#include "clients/agent/images/reference.h"
#include "clients/agent/read_as.h"
#include "clients/agent/task_files.h"
#include "support/proto_time.h"

namespace berth {
namespace {

constexpr char kDefaultSkopeo[] = "/usr/bin/skopeo";
constexpr absl::Duration kDefaultPullTimeout = absl::Hours(1);
constexpr absl::Duration kStall = absl::Seconds(30);
constexpr size_t kMaxCredentials = size_t{64} << 10;
constexpr char kAnyHost[] = "*";

using config::v1::Registry;

bool IsFor(const Registry& registry, const std::string& queue) {
  const auto& queues = registry.queues();
  return queues.empty() || std::find(queues.begin(), queues.end(), queue) != queues.end();
}

// Null: it is not configured for the queue.
const Registry* FindRegistry(const config::v1::Images& images, const std::string& host,
                             const std::string& queue) {
  for (const char* wanted : {host.c_str(), kAnyHost}) {
    for (const Registry& registry : images.registries()) {
      if (registry.host() == wanted && IsFor(registry, queue)) return &registry;
    }
  }
  return nullptr;
}

absl::Status NotConfigured(const config::v1::Images& images, const std::string& name,
                           const std::string& registry) {
  std::string message = absl::StrCat("image ", name, " is not ");
  if (!images.directory().empty()) {
    absl::StrAppend(&message, "in this node's ", images.directory(), ", and ");
  } else {
    absl::StrAppend(&message, "on this node: ");
  }
  absl::StrAppend(&message, registry, " (images.registries)");
  return BlameJob(absl::NotFoundError(message));
}

agent::v1::RegistrySource SourceOf(const std::string& host, const Registry* registry,
                                   const std::string& own_credentials) {
  agent::v1::RegistrySource source;
  source.set_host(host);
  source.set_credentials(own_credentials);
  if (registry == nullptr) return source;
  source.set_http(registry->http());
  source.set_ca(registry->ca());
  if (own_credentials.empty()) source.set_credentials(registry->credentials());
  return source;
}

// The path of the file for skopeo; empty: the job brings none.
absl::StatusOr<std::string> TakeCredentials(const v1::TaskLaunch& launch, const TaskUser& user,
                                            const std::string& directory) {
  if (launch.registry_auth().empty()) return std::string();
  const auto text = ReadFileAs(user, launch.registry_auth(), kMaxCredentials);
  if (!text.ok()) {
    return BlameJob(
        absl::FailedPreconditionError(absl::StrCat("registryAuth: ", text.status().message())));
  }
  std::string path = directory + kRegistryAuth;
  absl::Status status = WriteTextFile(path, *text, 0600);
  if (!status.ok()) return status;
  return path;
}

// Nobody may use an image that others pulled without showing credentials of his own.
std::string KeyOf(const std::string& image, const agent::v1::Pull& pull) {
  std::string all = image;
  for (const agent::v1::RegistrySource& source : pull.sources()) {
    absl::StrAppend(&all, "\n", source.host(), " ");
    if (source.credentials().empty()) continue;
    const auto text = ReadSmallFile(source.credentials(), source.credentials(), kMaxCredentials);
    absl::StrAppend(&all, text.ok() ? Sha256Hex(*text) : source.credentials());
  }
  return Sha256Hex(all);
}

agent::v1::PullPolicy PolicyOf(const v1::TaskLaunch& launch, const ImageReference& image) {
  switch (launch.image_pull_policy()) {
    case v1::IMAGE_PULL_POLICY_ALWAYS:
      return agent::v1::PULL_ALWAYS;
    case v1::IMAGE_PULL_POLICY_NEVER:
      return agent::v1::PULL_NEVER;
    case v1::IMAGE_PULL_POLICY_IF_NOT_PRESENT:
      return agent::v1::PULL_IF_NOT_PRESENT;
    default:
      return image.tag == "latest" ? agent::v1::PULL_ALWAYS : agent::v1::PULL_IF_NOT_PRESENT;
  }
}

}  // namespace

absl::StatusOr<agent::v1::Pull> PullOf(const config::v1::Images& images,
                                       const v1::TaskLaunch& launch, const TaskUser& user,
                                       const std::string& directory) {
  const auto image = ParseImageReference(launch.image(), images.default_registry());
  if (absl::IsNotFound(image.status())) {
    return NotConfigured(images, launch.image(), "it names no registry");
  }
  if (!image.ok()) return BlameJob(image.status());
  const Registry* registry = FindRegistry(images, image->host, launch.queue());
  if (registry == nullptr) {
    return NotConfigured(
        images, launch.image(),
        absl::StrCat("registry ", image->host, " is not configured for queue ", launch.queue()));
  }
  const auto credentials = TakeCredentials(launch, user, directory);
  if (!credentials.ok()) return credentials.status();
  agent::v1::Pull pull;
  pull.set_path(image->path);
  pull.set_tag(image->tag);
  pull.set_digest(image->digest);
  for (const std::string& mirror : registry->mirrors()) {
    *pull.add_sources() =
        SourceOf(mirror, FindRegistry(images, mirror, launch.queue()), *credentials);
  }
  *pull.add_sources() = SourceOf(image->host, registry, *credentials);
  pull.set_key(KeyOf(TextOf(*image), pull));
  pull.set_image(TextOf(*image));
  if (image->digest.empty() && IsDigest(launch.image_digest())) {
    ImageReference wanted = *image;
    wanted.tag.clear();
    wanted.digest = launch.image_digest();
    pull.set_wanted_digest(wanted.digest);
    pull.set_wanted_key(KeyOf(TextOf(wanted), pull));
  }
  pull.set_policy(PolicyOf(launch, *image));
  pull.set_skopeo(images.skopeo().empty() ? kDefaultSkopeo : images.skopeo());
  const absl::Duration timeout =
      images.has_pull_timeout() ? DurationFrom(images.pull_timeout()) : kDefaultPullTimeout;
  pull.set_timeout_ms(absl::ToInt64Milliseconds(timeout));
  pull.set_stall_ms(absl::ToInt64Milliseconds(kStall));
  return pull;
}

std::vector<std::string> RegistryProblems(const config::v1::Images& images) {
  std::vector<std::string> problems;
  const auto check_host = [&](const std::string& field, const std::string& host) {
    const auto parsed = ParseImageReference("x", host);
    const bool odd = !parsed.ok() || absl::StrContains(host, '/') || host.empty() ||
                     !ParseImageReference(absl::StrCat(host, "/x"), "").ok();
    if (odd) problems.push_back(absl::StrCat(field, ": \"", host, "\" is no HOST or HOST:PORT"));
  };
  const auto check_file = [&](const std::string& field, const std::string& path) {
    if (path.empty() || path[0] == '/') return;
    problems.push_back(absl::StrCat(field, ": must be an absolute path, is ", path));
  };
  for (int i = 0; i < images.registries_size(); ++i) {
    const Registry& registry = images.registries(i);
    const std::string at = absl::StrCat("images.registries[", i, "].");
    if (registry.host() != kAnyHost) check_host(at + "host", registry.host());
    for (const std::string& mirror : registry.mirrors()) check_host(at + "mirrors", mirror);
    check_file(at + "ca", registry.ca());
    check_file(at + "credentials", registry.credentials());
    if (registry.http() && !registry.ca().empty()) {
      problems.push_back(at + "ca: has no meaning with http");
    }
  }
  const std::string& host = images.default_registry();
  if (host.empty()) return problems;
  check_host("images.defaultRegistry", host);
  const bool known =
      std::any_of(images.registries().begin(), images.registries().end(),
                  [&](const auto& one) { return one.host() == host || one.host() == kAnyHost; });
  if (!known) {
    problems.push_back(
        absl::StrCat("images.defaultRegistry: ", host, " is not in images.registries"));
  }
  return problems;
}

}  // namespace berth
