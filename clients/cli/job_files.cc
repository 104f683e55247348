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
      return "scratch";
    case v1::Volume::kFiles:
      return volume.files().files_size() == 1 ? "1 file"
                                              : absl::StrCat(volume.files().files_size(), " files");
    default:
      return "?";
  }
}

}  // namespace

std::string FilesText(const v1::JobSpec& spec) {
  std::string text;
  for (const v1::TaskGroup& group : spec.groups()) {
    if (!group.image().empty())
      absl::StrAppend(&text, group.name(), ": image ", group.image(), "\n");
    for (const v1::Volume& volume : group.volumes()) {
      absl::StrAppend(&text, group.name(), ": ", volume.path(), " is ", SourceText(volume),
                      volume.read_only() ? ", read-only" : "", "\n");
    }
  }
  return text;
}

}  // namespace berth
