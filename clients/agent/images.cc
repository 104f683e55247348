#include "clients/agent/images.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "berth/agent/v1/image.pb.h"
#include "clients/agent/fault.h"
#include "clients/agent/supervisor/id_swap.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {
namespace {

// A JSON string. Bytes above 127 are passed through: the text is UTF-8, like protobuf's strings.
std::string Quote(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      absl::StrAppend(&out, "\\", std::string(1, c));
    else if (static_cast<unsigned char>(c) < 0x20)
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned>(c));
    else
      out.push_back(c);
  }
  return out + "\"";
}

std::string QuoteAll(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) absl::StrAppend(&out, out.empty() ? "" : ",", Quote(text));
  return absl::StrCat("[", out, "]");
}

std::string Mount(absl::string_view destination, absl::string_view type, absl::string_view source,
                  const std::vector<std::string>& options) {
  return absl::StrCat("{\"destination\":", Quote(destination), ",\"type\":", Quote(type),
                      ",\"source\":", Quote(source), ",\"options\":", QuoteAll(options), "}");
}

std::string Mounts(const ContainerSpec& spec) {
  std::vector<std::string> mounts = {
      Mount("/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}),
      Mount("/dev", "tmpfs", "tmpfs", {"nosuid", "strictatime", "mode=755", "size=65536k"}),
      Mount("/dev/pts", "devpts", "devpts",
            {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}),
      Mount("/dev/shm", "bind", spec.shm, {"bind", "rw", "nosuid", "nodev"}),
      Mount("/sys", "bind", "/sys", {"rbind", "ro", "nosuid", "noexec", "nodev"}),
      Mount("/run", "tmpfs", "tmpfs", {"nosuid", "nodev", "mode=755", "size=65536k"})};
  for (const Bind& bind : spec.binds) {
    std::vector<std::string> options = {"rbind", bind.writable ? "rw" : "ro", "nosuid"};
    if (!bind.devices) options.push_back("nodev");
    mounts.push_back(Mount(bind.destination, "bind", bind.source, options));
  }
  std::string out;
  for (const std::string& mount : mounts) absl::StrAppend(&out, out.empty() ? "" : ",", mount);
  return absl::StrCat("[", out, "]");
}

// As seen inside: a group whose number the user's own has there is one of the map's two.
std::string Gids(const ContainerSpec& spec) {
  std::string out;
  for (const gid_t gid : spec.user.groups) {
    if (gid == spec.user.gid) continue;
    const bool taken = spec.seen_uid != 0 && gid == spec.seen_gid;
    absl::StrAppend(&out, out.empty() ? "" : ",", taken ? spec.user.gid : gid);
  }
  return absl::StrCat("[", out, "]");
}

std::string IdMap(const std::vector<IdRange>& ranges) {
  std::string out;
  for (const IdRange& range : ranges) {
    absl::StrAppend(&out, out.empty() ? "" : ",", "{\"containerID\":", range.inside,
                    ",\"hostID\":", range.outside, ",\"size\":", range.count, "}");
  }
  return absl::StrCat("[", out, "]");
}

std::string Namespaces(const ContainerSpec& spec) {
  const std::string own = "\"namespaces\":[{\"type\":\"mount\"},{\"type\":\"pid\"}";
  if (spec.seen_uid == 0) return absl::StrCat(own, "]");
  return absl::StrCat(
      own, ",{\"type\":\"user\"}],\"uidMappings\":", IdMap(SwapIds(spec.seen_uid, spec.user.uid)),
      ",\"gidMappings\":", IdMap(SwapIds(spec.seen_gid, spec.user.gid)));
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool IsLayout(const std::string& path) { return access((path + "/oci-layout").c_str(), F_OK) == 0; }

// The directory that the name leads to; "" if it is not a directory.
absl::StatusOr<std::string> PathInStore(const std::string& directory, absl::string_view name) {
  std::string path = directory;
  bool there = true;
  for (const absl::string_view part : absl::StrSplit(name, '/')) {
    if (part.empty() || part[0] == '.' || part.find('\0') != absl::string_view::npos)
      return absl::InvalidArgumentError(absl::StrCat("image ", name, ": not a valid name"));
    absl::StrAppend(&path, "/", part);
    there = there && IsDirectory(path);
  }
  return there ? path : "";
}

absl::Status NoSuchImage(const std::string& directory, const std::string& name) {
  const bool tagged = name.rfind(':') != std::string::npos && !absl::EndsWith(name, ":");
  return absl::NotFoundError(absl::StrCat("image ", name, " is not in this node's ", directory,
                                          "; add it with skopeo copy ", "docker://REGISTRY/", name,
                                          " oci:", directory, "/", name, tagged ? "" : ":latest"));
}

absl::StatusOr<FoundImage> Find(const std::string& directory, const std::string& name) {
  if (directory.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "image ", name, ": this node has no images (set images.directory or images.registries)"));
  }
  auto path = PathInStore(directory, name);
  if (!path.ok()) return path.status();
  if (!path->empty() && IsLayout(*path))
    return FoundImage{.rootfs = "", .layout = *path, .tag = ""};
  if (!path->empty())
    return FoundImage{.rootfs = IsDirectory(*path + "/rootfs") ? *path + "/rootfs" : *path,
                      .layout = "",
                      .tag = ""};
  const size_t colon = name.rfind(':');
  if (colon == std::string::npos || name.find('/', colon) != std::string::npos)
    return NoSuchImage(directory, name);
  path = PathInStore(directory, absl::string_view(name).substr(0, colon));
  if (!path.ok() || path->empty() || !IsLayout(*path)) return NoSuchImage(directory, name);
  return FoundImage{.rootfs = "", .layout = *path, .tag = name.substr(colon + 1)};
}

// Berth replaces no variables in what the image itself says (supervisor/expand.h).
std::string KeepReferences(const std::string& word) {
  std::string kept;
  for (size_t i = 0; i < word.size(); ++i) {
    kept.push_back(word[i]);
    if (word[i] != '$' || i + 1 == word.size()) continue;
    const char next = word[i + 1];
    if (absl::ascii_isalpha(next) || next == '_' || next == '{') kept.push_back('$');
  }
  return kept;
}

}  // namespace

// The job chose the name, so errors are the job's fault.
absl::StatusOr<FoundImage> FindImage(const std::string& directory, const std::string& name) {
  absl::StatusOr<FoundImage> found = Find(directory, name);
  return found.ok() ? found : BlameJob(found.status());
}

absl::StatusOr<TaskImage> LinkedImage(const std::string& cache, const std::string& link) {
  std::error_code error;
  const auto target = std::filesystem::read_symlink(absl::StrCat(cache, "/used/", link), error);
  if (error) return absl::NotFoundError("the task's image is not unpacked");
  const std::string entry = absl::StrCat(cache, "/", target.filename().string());
  std::string text;
  agent::v1::UnpackedImage record;
  if (ReadWholeFile(entry + "/image", &text) != 0 || !record.ParseFromString(text))
    return absl::DataLossError(absl::StrCat(entry, " is damaged: remove it"));
  TaskImage image{
      .rootfs = entry + "/rootfs", .env = {}, .working_directory = record.working_directory()};
  image.entry_point.assign(record.entry_point().begin(), record.entry_point().end());
  image.command.assign(record.command().begin(), record.command().end());
  image.user = record.user();
  image.home = record.home();
  image.uid = record.uid();
  image.gid = record.gid();
  for (const std::string& variable : record.env()) {
    const size_t equals = variable.find('=');
    image.env[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  return image;
}

absl::StatusOr<std::vector<std::string>> ArgvOf(const TaskImage& image,
                                                std::vector<std::string> args) {
  std::vector<std::string> argv;
  for (const std::string& word : image.entry_point) argv.push_back(KeepReferences(word));
  if (args.empty()) {
    for (const std::string& word : image.command) args.push_back(KeepReferences(word));
  }
  argv.insert(argv.end(), args.begin(), args.end());
  if (!argv.empty() && !argv[0].empty()) return argv;
  return BlameJob(
      absl::FailedPreconditionError("the image has no entry point, and the job has no command"));
}

// No capabilities, and none can be gained; only processes and mounts are isolated.
std::string ContainerConfig(const ContainerSpec& spec) {
  return absl::StrCat(
      "{\"ociVersion\":\"1.0.0\",\"process\":{\"terminal\":",
      spec.terminal ? "true,\"consoleSize\":{\"height\":24,\"width\":80}" : "false",
      ",\"user\":{\"uid\":", spec.seen_uid == 0 ? spec.user.uid : spec.seen_uid,
      ",\"gid\":", spec.seen_uid == 0 ? spec.user.gid : spec.seen_gid,
      ",\"additionalGids\":", Gids(spec), "},\"args\":", QuoteAll(spec.argv),
      ",\"env\":", QuoteAll(spec.env), ",\"cwd\":", Quote(spec.working_directory),
      ",\"capabilities\":{},\"noNewPrivileges\":true},\"root\":{\"path\":", Quote(spec.rootfs),
      ",\"readonly\":", spec.writable ? "false" : "true", "},\"mounts\":", Mounts(spec),
      ",\"linux\":{", Namespaces(spec),
      ",\"maskedPaths\":"
      "[\"/proc/kcore\",\"/proc/keys\",\"/proc/timer_list\",\"/sys/firmware\"],"
      "\"readonlyPaths\":[\"/proc/sys\",\"/proc/sysrq-trigger\",\"/proc/irq\",\"/proc/bus\"]}}\n");
}

}  // namespace berth
