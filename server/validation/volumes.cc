#include "server/validation/volumes.h"

#include <array>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/validation/text.h"
#include "server/validation/values.h"

namespace berth {
namespace {

constexpr int kMaxVolumes = 64;
constexpr size_t kMaxVolumePath = 512;
constexpr size_t kMaxHostPath = 4096;
constexpr int kMaxFiles = 256;
constexpr size_t kMaxFilesBytes = size_t{128} << 10;
constexpr int64_t kMaxTmpfsBytes = int64_t{1} << 50;

struct OwnPath {
  absl::string_view path, why;
};
// Nothing may be mounted at these paths and below them.
constexpr std::array kOwnPaths = {
    OwnPath{"/proc", "the task's processes are there"},
    OwnPath{"/sys", "the kernel's files are there"},
    OwnPath{"/dev", "the task's devices and its shared memory are there"},
    OwnPath{"/run/berth", "Berth's own files are there"}};

bool IsWithin(absl::string_view path, absl::string_view directory) {
  return path == directory || absl::StartsWith(path, absl::StrCat(directory, "/"));
}

// Names with '/' between, none empty, "." or "..", and no control characters.
bool IsCleanRelative(absl::string_view path) {
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  }
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

bool IsCleanAbsolute(absl::string_view path) {
  return absl::StartsWith(path, "/") && IsCleanRelative(path.substr(1));
}

bool CheckPath(const FieldPath& path, const std::string& text, size_t most, Findings& findings) {
  if (IsCleanAbsolute(text) && text.size() <= most) return true;
  findings.Invalid(path, absl::StrCat("must be an absolute path of at most ", most,
                                      " bytes, without \".\", \"..\", empty parts and control "
                                      "characters, is ",
                                      Quoted(text)));
  return false;
}

void CheckMountPoint(const FieldPath& path, const v1::TaskGroup& group, int index,
                     Findings& findings) {
  const std::string& wanted = group.volumes(index).path();
  if (!CheckPath(path, wanted, kMaxVolumePath, findings)) return;
  for (const OwnPath& own : kOwnPaths) {
    if (!IsWithin(wanted, own.path) && !IsWithin(own.path, wanted)) continue;
    findings.Invalid(path, absl::StrCat("cannot be ", wanted, ": ", own.why));
    return;
  }
  for (int i = 0; i < index; ++i) {
    const std::string& other = group.volumes(i).path();
    if (wanted == other) {
      findings.Invalid(path, absl::StrCat("volumes[", i, "] has the same path"));
    } else if (IsWithin(wanted, other) || IsWithin(other, wanted)) {
      findings.Invalid(path, absl::StrCat("cannot be together with ", other, " of volumes[", i,
                                          "]: one would be inside the other"));
    }
  }
}

bool IsMode(absl::string_view text) {
  if (text.size() < 3 || text.size() > 4 || (text.size() == 4 && text[0] != '0')) return false;
  return text.find_first_not_of("01234567") == absl::string_view::npos;
}

void CheckFile(const FieldPath& path, const v1::FilesVolume& volume, int index,
               Findings& findings) {
  const v1::VolumeFile& file = volume.files(index);
  if (!file.mode().empty() && !IsMode(file.mode())) {
    findings.Invalid({path, "mode"}, absl::StrCat("must be three octal digits, such as 0755, is ",
                                                  Quoted(file.mode())));
  }
  const FieldPath name(path, "name");
  if (file.name().empty()) {
    if (volume.files_size() > 1)
      findings.Invalid(name, "required: only a single file can be the volume itself");
    return;
  }
  if (!IsCleanRelative(file.name()) || file.name().size() > kMaxVolumePath) {
    findings.Invalid(name, absl::StrCat("must be a relative path of at most ", kMaxVolumePath,
                                        " bytes, without \".\", \"..\" and empty parts, is ",
                                        Quoted(file.name())));
    return;
  }
  for (int i = 0; i < index; ++i) {
    const std::string& other = volume.files(i).name();
    if (!IsWithin(file.name(), other) && !IsWithin(other, file.name())) continue;
    findings.Invalid(name,
                     absl::StrCat("cannot be together with ", Quoted(other), ", files[", i, "]"));
    return;
  }
}

void CheckFiles(const FieldPath& path, const v1::FilesVolume& volume, Findings& findings) {
  const FieldPath files(path, "files");
  if (volume.files_size() < 1 || volume.files_size() > kMaxFiles) {
    findings.Invalid(files,
                     absl::StrCat("must be 1..", kMaxFiles, " files, are ", volume.files_size()));
    return;
  }
  size_t bytes = 0;
  for (int i = 0; i < volume.files_size(); ++i) {
    bytes += volume.files(i).content().size();
    CheckFile({path, "files", i}, volume, i, findings);
  }
  if (bytes <= kMaxFilesBytes) return;
  findings.Invalid(files, absl::StrCat("at most ", kMaxFilesBytes, " bytes in all, are ", bytes));
}

void CheckVolume(const FieldPath& path, const v1::TaskGroup& group, int index, Findings& findings) {
  const v1::Volume& volume = group.volumes(index);
  CheckMountPoint({path, "path"}, group, index, findings);
  const bool own = volume.has_tmpfs() || (volume.has_scratch() && volume.scratch().name().empty());
  if (volume.read_only() && own) {
    findings.Invalid({path, "read_only"}, "nobody could write into this empty volume");
  }
  switch (volume.source_case()) {
    case v1::Volume::kHostPath:
      CheckPath({path, "host_path"}, volume.host_path(), kMaxHostPath, findings);
      return;
    case v1::Volume::kTmpfs: {
      const FieldPath tmpfs(path, "tmpfs");
      return CheckRange({tmpfs, "size"}, volume.tmpfs().size_bytes(), 0, kMaxTmpfsBytes, findings);
    }
    case v1::Volume::kScratch: {
      const FieldPath scratch(path, "scratch");
      if (volume.scratch().name().empty()) return;
      return CheckDnsLabel({scratch, "name"}, volume.scratch().name(), findings);
    }
    case v1::Volume::kFiles:
      return CheckFiles({path, "files"}, volume.files(), findings);
    default:
      findings.Invalid(path, "required: one of host_path, tmpfs, scratch and files");
  }
}

}  // namespace

void CheckVolumes(const FieldPath& path, const v1::TaskGroup& group, Findings& findings) {
  if (group.volumes_size() > kMaxVolumes) {
    findings.Invalid({path, "volumes"},
                     absl::StrCat("at most ", kMaxVolumes, " volumes, has ", group.volumes_size()));
    return;
  }
  for (int i = 0; i < group.volumes_size(); ++i) {
    CheckVolume({path, "volumes", i}, group, i, findings);
  }
}

}  // namespace berth
