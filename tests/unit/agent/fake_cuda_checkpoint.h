// A program that behaves like NVIDIA's cuda-checkpoint for one process at a time, as far as Berth
// uses it. In its directory:
//   state          of the process: running, locked, checkpointed or anything else
//   calls          its arguments, one call a line
//   fail-ACTION    exists: that action (lock, checkpoint, restore, unlock, get-state) fails with
//   this
//                  text, and changes nothing
//   slow-ACTION    exists: it takes as many seconds as this says
#ifndef BERTH_TESTS_UNIT_AGENT_FAKE_CUDA_CHECKPOINT_H_
#define BERTH_TESTS_UNIT_AGENT_FAKE_CUDA_CHECKPOINT_H_

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_replace.h"

namespace berth::testing {

inline constexpr char kFakeCudaCheckpoint[] = R"(#!/bin/sh
cd DIRECTORY || exit 9
echo "$*" >> calls
case "$1" in
  --help) echo "--get-state --pid <pid>"; echo "--action lock [--timeout <ms>]"; exit 0;;
  --get-state) what=get-state;;
  --action) what=$2;;
  *) echo "unknown operation"; exit 2;;
esac
if [ -e slow-$what ]; then sleep $(cat slow-$what); fi
if [ -e fail-$what ]; then cat fail-$what; exit 1; fi
was=$(cat state)
change() {
  if [ "$was" != $1 ]; then echo "the process is $was"; exit 1; fi
  echo $2 > state
}
case $what in
  get-state) echo $was;;
  lock) change running locked;;
  checkpoint) change locked checkpointed;;
  restore) change checkpointed locked;;
  unlock) change locked running;;
esac
)";

class FakeCudaCheckpoint {
 public:
  explicit FakeCudaCheckpoint(const std::string& directory) : directory_(directory) {
    std::filesystem::create_directories(directory);
    Put("cuda-checkpoint", absl::StrReplaceAll(kFakeCudaCheckpoint, {{"DIRECTORY", directory}}));
    chmod(program().c_str(), 0755);
    Put("state", "running\n");
  }
  std::string program() const { return directory_ + "/cuda-checkpoint"; }
  void Put(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ + "/" + name) << text;
  }
  void Remove(const std::string& name) const { std::filesystem::remove(directory_ + "/" + name); }
  std::string Get(const std::string& name) const {
    std::ifstream file(directory_ + "/" + name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::string State() const {
    const std::string text = Get("state");
    return text.substr(0, text.find('\n'));
  }

 private:
  const std::string directory_;
};

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_AGENT_FAKE_CUDA_CHECKPOINT_H_
