#include "clients/cli/job_files.h"

#include "absl/strings/str_cat.h"
#include "clients/cli/human.h"

namespace berth {
namespace {

// "hostPath /srv/data", "tmpfs of 1Gi", "scratch", "3 files"
std::string SourceText(const v1::Volume& volume) {
  switch (volume.source_case()) {
    case v1::Volume::kHostPath:
      return absl::StrCat("hostPath ", volume.host_path());
    case v1::Volume::kTmpfs:
      return volume.tmpfs().size_bytes() > 0
                 ? absl::StrCat("tmpfs of ", HumanBytes(volume.tmpfs().size_bytes()))
                 : "tmpfs";
    case v1::Volume::kScratch:
      return volume.scratch().name().empty() ? "scratch"
                                             : absl::StrCat("scratch ", volume.scratch().name());
    case v1::Volume::kFiles:
      return volume.files().files_size() == 1 ? "1 file"
                                              : absl::StrCat(volume.files().files_size(), " files");
    default:
      return "?";
  }
}

const char* KindText(v1::Container::Kind kind) {
  return kind == v1::Container::INIT ? "init" : kind == v1::Container::PEER ? "peer" : "sidecar";
}

void AddFiles(const std::string& owner, const std::string& image,
              const google::protobuf::RepeatedPtrField<v1::Volume>& volumes, std::string* text) {
  if (!image.empty()) absl::StrAppend(text, owner, ": image ", image, "\n");
  for (const v1::Volume& volume : volumes) {
    absl::StrAppend(text, owner, ": ", volume.path(), " is ", SourceText(volume),
                    volume.read_only() ? ", read-only" : "", "\n");
  }
}

}  // namespace

std::string FilesText(const v1::JobSpec& spec) {
  std::string text;
  for (const v1::TaskGroup& group : spec.groups()) {
    AddFiles(group.name(), group.image(), group.volumes(), &text);
    for (const v1::Container& container : group.containers()) {
      AddFiles(absl::StrCat(group.name(), "/", container.name()), container.image(),
               container.volumes(), &text);
    }
  }
  return text;
}

std::string ContainersText(const v1::JobSpec& spec) {
  std::string text;
  for (const v1::TaskGroup& group : spec.groups()) {
    for (const v1::Container& container : group.containers()) {
      absl::StrAppend(&text, group.name(), "/", container.name(), ": ", KindText(container.kind()),
                      "\n");
    }
  }
  return text;
}

}  // namespace berth
