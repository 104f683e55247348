#include <charconv>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "clients/cli/kubernetes_pod.h"
#include "support/quantity.h"
#include "support/utf8.h"

namespace berth {
namespace {

using kubernetes::v1::VolumeMount;
using Contents = std::map<std::string, std::string>;  // of a ConfigMap or Secret, by key

constexpr int32_t kUsualMode = 0644;

class VolumeConverter {
 public:
  VolumeConverter(const std::string& path, const kubernetes::v1::PodSpec& pod,
                  const std::string& to, PodDirectories& directories, ForeignJob& job,
                  v1::ResourceRequest& resources, v1::TaskGroup& group)
      : path_(path),
        pod_(pod),
        to_(to),
        directories_(directories),
        job_(job),
        document_(job.document()),
        resources_(resources),
        group_(group) {}

  void Convert(const std::string& container_path, const kubernetes::v1::Container& container) {
    const auto& mounts = container.volume_mounts();
    for (int i = 0; i < mounts.size(); ++i) {
      ConvertMount(absl::StrCat(container_path, ".volume_mounts[", i, "]"), mounts[i]);
    }
  }

 private:
  void ConvertMount(const std::string& mount_path, const VolumeMount& mount) {
    for (int i = 0; i < pod_.volumes_size(); ++i) {
      if (pod_.volumes(i).name() != mount.name()) continue;
      job_.Place(absl::StrCat(to_, ".volumes[", group_.volumes_size(), "]"), mount_path);
      v1::Volume volume;
      volume.set_path(std::string(absl::StripSuffix(mount.mount_path(), "/")));
      volume.set_read_only(mount.read_only());
      const std::string volume_path = absl::StrCat(path_, ".volumes[", i, "]");
      if (ConvertSource(volume_path, pod_.volumes(i), mount_path, mount, &volume))
        *group_.add_volumes() = std::move(volume);
      return;
    }
    if (document_.complete())
      document_.Error(mount_path, absl::StrCat("there is no volume \"", mount.name(), "\""));
  }

  // False if nothing is mounted.
  bool ConvertSource(const std::string& path, const kubernetes::v1::Volume& in,
                     const std::string& mount_path, const VolumeMount& mount, v1::Volume* out) {
    if (in.has_host_path()) return ConvertHostPath(path, in.host_path(), mount, out);
    if (in.has_config_map()) {
      const auto& maps = document_.file().config_maps;
      const auto found = maps.find(in.config_map().name());
      if (found == maps.end())
        return NotInFile(path, "ConfigMap", in.config_map().name(), in.config_map().optional());
      return ConvertFiles(path, in.config_map(), ConfigContents(found->second), mount, out);
    }
    if (in.has_secret()) {
      const auto& secrets = document_.file().secrets;
      const auto found = secrets.find(in.secret().secret_name());
      if (found == secrets.end())
        return NotInFile(path, "Secret", in.secret().secret_name(), in.secret().optional());
      document_.Warn(path,
                     "the content of a Secret becomes part of the job, and whoever may read "
                     "the job reads it");
      return ConvertFiles(path, in.secret(), SecretContents(found->second), mount, out);
    }
    return document_.complete() && ConvertEmpty(path, in, mount_path, mount, out);
  }

  bool NotInFile(const std::string& path, const char* kind, const std::string& name,
                 bool optional) {
    if (optional) return false;
    document_.Error(path, absl::StrCat(kind, " \"", name,
                                       "\" is not in this file, and Berth stores none: put its "
                                       "document into the file"));
    return false;
  }

  static Contents ConfigContents(const kubernetes::v1::ConfigMap& map) {
    Contents contents(map.data().begin(), map.data().end());
    contents.insert(map.binary_data().begin(), map.binary_data().end());
    return contents;
  }
  static Contents SecretContents(const kubernetes::v1::Secret& secret) {
    Contents contents(secret.data().begin(), secret.data().end());
    for (const auto& [key, value] : secret.string_data()) contents[key] = value;
    return contents;
  }

  int64_t SizeOf(const std::string& path, const kubernetes::v1::EmptyDir& empty) {
    if (empty.size_limit().empty()) return 0;
    const auto limit = ParseBytes(empty.size_limit());
    if (limit.ok()) return *limit;
    document_.Error(path, absl::StrCat("sizeLimit: ", limit.status().message()));
    return 0;
  }

  // A directory that is mounted several times, in one container or in several, has a name.
  bool ConvertEmpty(const std::string& path, const kubernetes::v1::Volume& in,
                    const std::string& mount_path, const VolumeMount& mount, v1::Volume* out) {
    const auto& empty = in.empty_dir();
    const bool shared = directories_.mounts[in.name()] > 1;
    const int64_t size = SizeOf(path, empty);
    if (empty.medium() == "Memory" && out->path() == "/dev/shm") {
      document_.Warn(
          mount_path,
          "/dev/shm: the tasks of a job share one of their own, bounded by their memory");
      return false;
    }
    if (empty.medium() == "Memory" && !shared) {
      out->mutable_tmpfs()->set_size_bytes(size);
      return true;
    }
    if (empty.medium() == "Memory") {
      document_.Warn(mount_path, absl::StrCat("emptyDir \"", in.name(),
                                              "\" is on disk: it is mounted several times, and "
                                              "memory would be another directory each time"));
    } else if (!empty.medium().empty()) {
      document_.Error(
          path, absl::StrCat("emptyDir.medium \"", empty.medium(), "\" is not empty or Memory"));
    }
    out->mutable_scratch();
    if (shared) out->mutable_scratch()->set_name(in.name());
    if (shared && !mount.sub_path().empty()) {
      document_.Error(mount_path, absl::StrCat("subPath of emptyDir \"", in.name(),
                                               "\", which is mounted several times: use an "
                                               "emptyDir for each"));
    }
    if (directories_.counted.insert(in.name()).second)
      resources_.set_scratch_bytes(resources_.scratch_bytes() + size);
    return true;
  }

  bool ConvertHostPath(const std::string& path, const kubernetes::v1::HostPath& in,
                       const VolumeMount& mount, v1::Volume* out) {
    out->set_host_path(mount.sub_path().empty() ? in.path()
                                                : absl::StrCat(absl::StripSuffix(in.path(), "/"),
                                                               "/", mount.sub_path()));
    const std::string& type = in.type();
    if (absl::EndsWith(type, "OrCreate")) {
      document_.Warn(path, absl::StrCat("hostPath.type ", type,
                                        ": Berth creates nothing there; the path must exist"));
    } else if (!type.empty() && type != "Directory" && type != "File") {
      document_.Error(path, absl::StrCat("hostPath.type ", type,
                                         ": only directories and files can be mounted"));
    }
    return true;
  }

  // As YAML 1.1 reads numbers: "0755" is octal, "493" the same in decimal.
  int32_t ReadMode(const std::string& path, const std::string& text) {
    int32_t mode = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, mode, absl::StartsWith(text, "0") ? 8 : 10);
    if (read.ec == std::errc() && read.ptr == end && mode >= 0 && mode <= 0777) return mode;
    document_.Error(path, absl::StrCat("mode \"", text, "\" is not 0 to 0777"));
    return kUsualMode;
  }

  // `in` has items, default_mode and optional.
  template <class Source>
  bool ConvertFiles(const std::string& path, const Source& in, const Contents& contents,
                    const VolumeMount& mount, v1::Volume* out) {
    const int32_t usual =
        in.has_default_mode() ? ReadMode(path + ".default_mode", in.default_mode()) : kUsualMode;
    v1::FilesVolume all;
    const auto add = [&](const std::string& name, const std::string& content, int32_t mode) {
      if (FirstBadUtf8(content) != absl::string_view::npos) {
        return document_.Error(path, absl::StrCat("\"", name,
                                                  "\" is not UTF-8: files of a volume are "
                                                  "text"));
      }
      v1::VolumeFile& file = *all.add_files();
      file.set_name(name);
      file.set_content(content);
      if (mode != kUsualMode) file.set_mode(absl::StrFormat("0%o", mode));
    };
    for (const auto& item : in.items()) {
      const auto found = contents.find(item.key());
      if (found != contents.end())
        add(item.path(), found->second, item.has_mode() ? ReadMode(path, item.mode()) : usual);
      else if (!in.optional())
        document_.Error(path, absl::StrCat("there is no key \"", item.key(), "\""));
    }
    if (in.items().empty()) {
      for (const auto& [key, content] : contents) add(key, content, usual);
    }
    *out->mutable_files() = mount.sub_path().empty() ? all : OneFile(path, all, mount.sub_path());
    out->set_read_only(false);  // files always are
    return true;
  }

  v1::FilesVolume OneFile(const std::string& path, const v1::FilesVolume& all,
                          const std::string& name) {
    v1::FilesVolume one;
    for (const v1::VolumeFile& file : all.files()) {
      if (file.name() != name) continue;
      *one.add_files() = file;
      one.mutable_files(0)->clear_name();
    }
    if (one.files().empty()) document_.Error(path, absl::StrCat("there is no file \"", name, "\""));
    return one;
  }

  const std::string& path_;
  const kubernetes::v1::PodSpec& pod_;
  const std::string& to_;
  PodDirectories& directories_;
  ForeignJob& job_;
  ForeignDocument& document_;
  v1::ResourceRequest& resources_;
  v1::TaskGroup& group_;
};

}  // namespace

void ConvertVolumes(const std::string& path, const kubernetes::v1::PodSpec& pod,
                    const std::string& container_path, const kubernetes::v1::Container& container,
                    const std::string& to, PodDirectories* directories, ForeignJob* job,
                    v1::ResourceRequest* resources, v1::TaskGroup* out) {
  VolumeConverter(path, pod, to, *directories, *job, *resources, *out)
      .Convert(container_path, container);
}

}  // namespace berth
