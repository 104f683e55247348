#include "clients/agent/device_filter.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/agent/disk.h"

namespace berth {
namespace {

// Registers: 0 the verdict, 1 the request (bpf_cgroup_dev_ctx), 2 its type, 3 and 4 its numbers.
constexpr uint8_t kLoad32 = BPF_LDX | BPF_MEM | BPF_W;
constexpr uint8_t kAnd = BPF_ALU | BPF_AND | BPF_K;
constexpr uint8_t kSet = BPF_ALU64 | BPF_MOV | BPF_K;
constexpr uint8_t kJumpIfNot = BPF_JMP | BPF_JNE | BPF_K;
constexpr uint8_t kExit = BPF_JMP | BPF_EXIT;

using Program = std::vector<bpf_insn>;

bpf_insn Instruction(uint8_t code, uint8_t to, uint8_t from, size_t offset, int32_t value) {
  bpf_insn instruction{};
  instruction.code = code;
  instruction.dst_reg = to & 15;
  instruction.src_reg = from & 15;
  instruction.off = static_cast<int16_t>(offset);
  instruction.imm = value;
  return instruction;
}

void Answer(int32_t verdict, Program* program) {
  program->push_back(Instruction(kSet, 0, 0, 0, verdict));
  program->push_back(Instruction(kExit, 0, 0, 0, 0));
}

absl::StatusOr<Program> MakeProgram(const std::vector<std::string>& denied) {
  if (denied.size() > kMaxDeniedDevices)
    return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxDeniedDevices, " devices"));
  Program program;
  program.push_back(Instruction(kLoad32, 2, 1, offsetof(bpf_cgroup_dev_ctx, access_type), 0));
  program.push_back(Instruction(kAnd, 2, 0, 0, 0xffff));  // the upper half: read, write or mknod
  program.push_back(Instruction(kLoad32, 3, 1, offsetof(bpf_cgroup_dev_ctx, major), 0));
  program.push_back(Instruction(kLoad32, 4, 1, offsetof(bpf_cgroup_dev_ctx, minor), 0));
  program.push_back(Instruction(kJumpIfNot, 2, 0, 4 * denied.size(), BPF_DEVCG_DEV_CHAR));
  for (const std::string& device : denied) {
    const std::vector<std::string> numbers = absl::StrSplit(device, ':');
    int32_t major = 0;
    int32_t minor = 0;
    if (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &major) ||
        !absl::SimpleAtoi(numbers[1], &minor))
      return absl::InvalidArgumentError(absl::StrCat(device, " is not a device number"));
    program.push_back(Instruction(kJumpIfNot, 3, 0, 3, major));
    program.push_back(Instruction(kJumpIfNot, 4, 0, 2, minor));
    Answer(0, &program);
  }
  Answer(1, &program);
  return program;
}

int Bpf(int command, bpf_attr* attributes) {
  return static_cast<int>(syscall(SYS_bpf, command, attributes, sizeof *attributes));
}

// A descriptor that closes itself.
struct Descriptor {
  explicit Descriptor(int number) : number(number) {}
  ~Descriptor() {
    if (number >= 0) close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  const int number;
};

int Load(const Program& program) {
  static constexpr char kLicense[] = "Apache-2.0";
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  attributes.insns = reinterpret_cast<uint64_t>(program.data());
  attributes.insn_cnt = static_cast<uint32_t>(program.size());
  attributes.license = reinterpret_cast<uint64_t>(&kLicense[0]);
  return Bpf(BPF_PROG_LOAD, &attributes);
}

// BPF_PROG_ATTACH, in addition to existing programs, or BPF_PROG_DETACH.
int Connect(int command, int group, int program) {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.target_fd = static_cast<uint32_t>(group);
  attributes.attach_bpf_fd = static_cast<uint32_t>(program);
  attributes.attach_type = BPF_CGROUP_DEVICE;
  if (command == BPF_PROG_ATTACH) attributes.attach_flags = BPF_F_ALLOW_MULTI;
  return Bpf(command, &attributes);
}

absl::Status Bar(const std::string& group, const std::vector<std::string>& denied, bool keep) {
  const absl::StatusOr<Program> program = MakeProgram(denied);
  if (!program.ok()) return program.status();
  const Descriptor loaded(Load(*program));
  if (loaded.number < 0) return ErrnoStatus(errno, "load the device filter program");
  const Descriptor directory(open(group.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.number < 0) return ErrnoStatus(errno, absl::StrCat("open ", group));
  if (Connect(BPF_PROG_ATTACH, directory.number, loaded.number) != 0)
    return ErrnoStatus(errno, absl::StrCat("attach the device filter to ", group));
  if (!keep) Connect(BPF_PROG_DETACH, directory.number, loaded.number);
  return absl::OkStatus();
}

}  // namespace

absl::Status DenyAccess(const std::string& group, const std::vector<std::string>& denied) {
  return Bar(group, denied, true);
}

absl::Status TryDenyAccess(const std::string& group) { return Bar(group, {}, false); }

}  // namespace berth
