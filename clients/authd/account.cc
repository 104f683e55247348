#include "clients/authd/account.h"

#include <grp.h>
#include <pwd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/pki/certificate.h"

namespace berth {
namespace {

constexpr size_t kFirstBuffer = 4096;
constexpr size_t kMostBuffer = size_t{16} << 20;  // a group with a hundred thousand members
constexpr int kMostGroups = 65'536;               // the kernel's limit

absl::Status NameServiceError(absl::string_view what, int error) {
  return absl::UnavailableError(absl::StrCat("the name service cannot look up ", what, ": ",
                                             std::strerror(error), "; try again"));
}

// Calls look(buffer, size), one of the get*_r functions, with a buffer that is large enough.
// Its error number.
template <class Look>
int WithBuffer(std::vector<char>* buffer, const Look& look) {
  buffer->resize(kFirstBuffer);
  for (;;) {
    const int error = look(buffer->data(), buffer->size());
    if (error == EINTR) continue;
    if (error != ERANGE || buffer->size() >= kMostBuffer) return error;
    buffer->resize(buffer->size() * 4);
  }
}

bool MeansUnknown(int error) {  // see getpwnam(3)
  return error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM;
}

absl::StatusOr<std::string> GroupName(gid_t gid) {
  std::vector<char> buffer;
  group entry{};
  group* found = nullptr;
  const int error = WithBuffer(&buffer, [&](char* data, size_t size) {
    return getgrgid_r(gid, &entry, data, size, &found);
  });
  if (found != nullptr) return std::string(found->gr_name);
  if (MeansUnknown(error)) return std::string();
  return NameServiceError(absl::StrCat("group ", gid), error);
}

absl::StatusOr<std::vector<gid_t>> GroupIds(const std::string& user, gid_t own) {
  std::vector<gid_t> gids(64);
  for (;;) {
    int count = static_cast<int>(gids.size());
    if (getgrouplist(user.c_str(), own, gids.data(), &count) >= 0) {
      gids.resize(static_cast<size_t>(count));
      return gids;
    }
    if (gids.size() >= kMostGroups) {
      return absl::ResourceExhaustedError(absl::StrCat(user, " is in too many groups"));
    }
    gids.resize(gids.size() * 4);
  }
}

}  // namespace

absl::StatusOr<Account> AccountOf(uid_t uid) {
  std::vector<char> buffer;
  passwd entry{};
  passwd* found = nullptr;
  const int error = WithBuffer(&buffer, [&](char* data, size_t size) {
    return getpwuid_r(uid, &entry, data, size, &found);
  });
  if (found == nullptr) {
    if (!MeansUnknown(error)) return NameServiceError(absl::StrCat("uid ", uid), error);
    return absl::NotFoundError(absl::StrCat("uid ", uid, " has no account on this machine"));
  }
  Account account{.name = found->pw_name, .groups = {}};
  const absl::StatusOr<std::vector<gid_t>> gids = GroupIds(account.name, found->pw_gid);
  if (!gids.ok()) return gids.status();
  if (gids->size() > kMaxCertificateGroups) {
    return absl::ResourceExhaustedError(absl::StrCat(account.name, " is in ", gids->size(),
                                                     " groups; a certificate carries at most ",
                                                     kMaxCertificateGroups));
  }
  for (const gid_t gid : *gids) {
    absl::StatusOr<std::string> name = GroupName(gid);
    if (!name.ok()) return name.status();
    if (CanBeInCertificate(*name)) account.groups.push_back(*std::move(name));
  }
  return account;
}

uid_t OverflowUid() {
  constexpr uid_t kUsual = 65'534;
  std::ifstream file("/proc/sys/kernel/overflowuid");
  uid_t uid = kUsual;
  return file >> uid ? uid : kUsual;
}

}  // namespace berth
