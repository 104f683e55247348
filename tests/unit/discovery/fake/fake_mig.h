// The part of the fake driver that divides GPUs: profiles of an A100 with 80 GB. The instances of a
// GPU are in the file that BERTH_FAKE_NVML_STATE names, with ".gpuN" appended, so that they outlive
// the process: lines "PROFILE START ID COMPUTE". Without that file, see fake_nvml.cc.
#ifndef BERTH_TESTS_UNIT_DISCOVERY_FAKE_FAKE_MIG_H_
#define BERTH_TESTS_UNIT_DISCOVERY_FAKE_FAKE_MIG_H_

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace fake_mig {

struct Profile {
  unsigned number, id;
  const char* name;
  unsigned compute, memory, most, mebibytes;
  std::vector<unsigned> starts;
};
inline const std::vector<Profile>& Profiles() {
  static const std::vector<Profile> all = {
      {0, 19, "1g.10gb", 1, 1, 7, 9856, {0, 1, 2, 3, 4, 5, 6}},
      {1, 14, "2g.20gb", 2, 2, 3, 19968, {0, 2, 4}},
      {2, 9, "3g.40gb", 3, 4, 2, 40192, {0, 4}},
      {3, 5, "4g.40gb", 4, 4, 1, 40192, {0}},
      {4, 0, "7g.80gb", 7, 8, 1, 80384, {0}},
      {7, 20, "1g.10gb+me", 1, 1, 1, 9856, {0, 1, 2, 3, 4, 5, 6}},
      {9, 15, "1g.20gb", 1, 2, 4, 19968, {0, 2, 4, 6}}};
  return all;
}
inline const Profile* ByNumber(unsigned number) {
  for (const Profile& profile : Profiles()) {
    if (profile.number == number) return &profile;
  }
  return nullptr;
}
inline const Profile* ById(unsigned id) {
  for (const Profile& profile : Profiles()) {
    if (profile.id == id) return &profile;
  }
  return nullptr;
}
inline const Profile* ByName(const std::string& name) {
  for (const Profile& profile : Profiles()) {
    if (name == profile.name) return &profile;
  }
  return nullptr;
}

struct Instance {
  std::string profile;
  unsigned start = 0;
  size_t id = 0;  // never reused
  bool compute = false;
};

class Layout {
 public:
  explicit Layout(unsigned gpu) {
    const char* path = std::getenv("BERTH_FAKE_NVML_STATE");
    if (path == nullptr) return;
    path_ = path + (".gpu" + std::to_string(gpu));
    std::ifstream file(path_);
    there_ = file.good();
    Instance one;
    while (file >> one.profile >> one.start >> one.id >> one.compute) instances.push_back(one);
  }
  bool there() const { return there_; }
  void Save() const {
    std::ofstream file(path_ + ".new");
    for (const Instance& one : instances)
      file << one.profile << " " << one.start << " " << one.id << " " << one.compute << "\n";
    file.close();
    std::rename((path_ + ".new").c_str(), path_.c_str());
  }
  Instance* Find(size_t id) {
    for (Instance& one : instances) {
      if (one.id == id) return &one;
    }
    return nullptr;
  }
  // Whether it can be made there next to the existing instances.
  bool Fits(const Profile& profile, unsigned start) const {
    unsigned compute = profile.compute, same = 1;
    for (const Instance& one : instances) {
      const Profile& other = *ByName(one.profile);
      if (start < one.start + other.memory && one.start < start + profile.memory) return false;
      compute += other.compute;
      same += one.profile == profile.name;
    }
    bool offered = false;
    for (const unsigned at : profile.starts) offered = offered || at == start;
    return offered && compute <= 7 && same <= profile.most;
  }
  size_t NextId() const {
    size_t next = 1;
    std::ifstream counter(path_ + ".next");
    counter >> next;
    std::ofstream(path_ + ".next") << next + 1;
    return next;
  }

  std::vector<Instance> instances;

 private:
  std::string path_;
  bool there_ = false;
};

// Handles of instances, which are also those of their devices: 10000 * (GPU + 1) + id.
inline constexpr size_t kFirstHandle = 10000;
inline size_t HandleOf(unsigned gpu, size_t id) { return kFirstHandle * (gpu + 1) + id; }
inline unsigned GpuOfHandle(size_t handle) {
  return static_cast<unsigned>(handle / kFirstHandle - 1);
}
inline size_t IdOf(size_t handle) { return handle % kFirstHandle; }

}  // namespace fake_mig

#endif  // BERTH_TESTS_UNIT_DISCOVERY_FAKE_FAKE_MIG_H_
