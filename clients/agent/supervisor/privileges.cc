#include "clients/agent/supervisor/privileges.h"

#include <grp.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

namespace berth {
namespace {

// "0-3,8" -> the set; false if it is not such a list.
bool ParseCpus(const std::string& text, cpu_set_t* set) {
  CPU_ZERO(set);
  const char* at = text.c_str();
  while (*at != '\0') {
    char* end = nullptr;
    const unsigned long first = std::strtoul(at, &end, 10);
    unsigned long last = first;
    if (end == at) return false;
    if (*end == '-') {
      at = end + 1;
      last = std::strtoul(at, &end, 10);
      if (end == at) return false;
    }
    if (last < first || last >= CPU_SETSIZE) return false;
    for (unsigned long cpu = first; cpu <= last; ++cpu) CPU_SET(cpu, set);
    if (*end != ',' && *end != '\0') return false;
    at = *end == ',' ? end + 1 : end;
  }
  return CPU_COUNT(set) > 0;
}

// From now on, this process and its children prefer memory of these NUMA nodes and fall back to any
// other. Older kernels can prefer only one node. No change if the kernel does not have these nodes.
void PreferMemory(const std::string& nodes) {
  cpu_set_t set;
  if (nodes.empty() || !ParseCpus(nodes, &set)) return;
  constexpr size_t kBits = sizeof(unsigned long) * 8;
  std::array<unsigned long, CPU_SETSIZE / kBits> mask{};
  for (size_t node = 0; node < CPU_SETSIZE; ++node) {
    if (CPU_ISSET(node, &set)) mask[node / kBits] |= 1UL << node % kBits;
  }
  const auto prefer = [&](int mode) {
    return syscall(SYS_set_mempolicy, mode, mask.data(), CPU_SETSIZE + 1UL) == 0;
  };
  if (!prefer(MPOL_PREFERRED_MANY) && CPU_COUNT(&set) == 1) (void)prefer(MPOL_PREFERRED);
}

}  // namespace

FileRights::FileRights(uid_t uid, gid_t gid) : on_(geteuid() == 0) {
  if (!on_) return;
  setfsgid(gid);
  setfsuid(uid);
}

FileRights::~FileRights() {
  if (!on_) return;
  setfsuid(geteuid());
  setfsgid(getegid());
}

void ResetSignals() {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

int TakeGroups(const passwd* user) {
  if (user == nullptr || geteuid() != 0) return 0;
  return initgroups(user->pw_name, user->pw_gid) == 0 ? 0 : errno;
}

int BecomeUser(const passwd* user) {
  if (user != nullptr && geteuid() != 0 && user->pw_uid != geteuid()) return EPERM;
  if (user != nullptr && geteuid() == 0) {
    if (setresgid(user->pw_gid, user->pw_gid, user->pw_gid) != 0 ||
        setresuid(user->pw_uid, user->pw_uid, user->pw_uid) != 0) {
      return errno;
    }
  }
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : errno;
}

int ApplyLimits(const SupervisorSpec& spec) {
  if (spec.data_limit_bytes > 0) {
    const auto bytes = static_cast<rlim_t>(spec.data_limit_bytes);
    const rlimit limit{bytes, bytes};
    if (setrlimit(RLIMIT_DATA, &limit) != 0) return errno;
  }
  PreferMemory(spec.memory_nodes);
  if (spec.cpus.empty()) return 0;
  // CPUs near its devices; the task also runs elsewhere if the kernel does not have them.
  cpu_set_t set;
  if (ParseCpus(spec.cpus, &set)) (void)sched_setaffinity(0, sizeof set, &set);
  return 0;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace berth
