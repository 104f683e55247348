#include "clients/agent/supervisor/spec.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "clients/agent/supervisor/text_fields.h"

namespace berth {
namespace {

constexpr char kSpareSuffix[] = ".spare";

// The list to which a field adds an entry; null for other fields.
std::vector<std::string>* ListOf(std::string_view key, SupervisorSpec* spec) {
  if (key == "arg") return &spec->argv;
  if (key == "env") return &spec->env;
  if (key == "group") return &spec->groups;
  if (key == "remove") return &spec->remove;
  if (key == "volume") return &spec->volumes;
  if (key == "prolog") return &spec->prolog;
  if (key == "epilog") return &spec->epilog;
  if (key == "hook_env") return &spec->hook_env;
  if (key == "exec") return &spec->exec_argv;
  if (key == "exec_tty") return &spec->exec_tty_argv;
  if (key == "container_name") return &spec->container_names;
  if (key == "gpu_file") return &spec->gpu_files;
  return nullptr;
}

void PutLists(const SupervisorSpec& spec, std::string* out) {
  SupervisorSpec copy = spec;
  for (const char* key : {"arg", "env", "group", "remove", "volume", "prolog", "epilog", "hook_env",
                          "exec", "exec_tty", "container_name", "gpu_file"}) {
    for (const std::string& entry : *ListOf(key, &copy)) PutField(out, key, entry);
  }
}

bool SetField(std::string_view key, std::string_view value, SupervisorSpec* spec) {
  struct Text {
    std::string_view key;
    std::string* field;
  };
  for (const Text& text : {Text{"user", &spec->user},
                           Text{"directory", &spec->directory},
                           Text{"lease_file", &spec->lease_file},
                           Text{"cpus", &spec->cpus},
                           Text{"memory_nodes", &spec->memory_nodes},
                           Text{"tmp", &spec->tmp},
                           Text{"var_tmp", &spec->var_tmp},
                           Text{"shm", &spec->shm},
                           Text{"sweep_record", &spec->sweep_record},
                           Text{"notify", &spec->notify},
                           Text{"notify_at", &spec->notify_at},
                           Text{"door", &spec->door},
                           Text{"door_at", &spec->door_at},
                           Text{"container_user", &spec->container_user},
                           Text{"owner", &spec->owner},
                           Text{"root", &spec->root},
                           Text{"root_lower", &spec->root_lower},
                           Text{"root_layer", &spec->root_layer},
                           Text{"name", &spec->name},
                           Text{"hosts", &spec->hosts},
                           Text{"cuda_checkpoint", &spec->cuda_checkpoint}}) {
    if (text.key == key) return *text.field = value, true;
  }
  struct Count {
    std::string_view key;
    int64_t* field;
  };
  for (const Count& count : {Count{"log_file_bytes", &spec->log_file_bytes},
                             Count{"log_files", &spec->log_files},
                             Count{"lapse_signal", &spec->lapse_signal},
                             Count{"lapse_grace_ms", &spec->lapse_grace_ms},
                             Count{"memory_bytes", &spec->memory_bytes},
                             Count{"data_limit_bytes", &spec->data_limit_bytes},
                             Count{"prolog_ms", &spec->prolog_ms},
                             Count{"epilog_ms", &spec->epilog_ms},
                             Count{"first_pid", &spec->first_pid},
                             Count{"shm_bytes", &spec->shm_bytes},
                             Count{"sweep_uid", &spec->sweep_uid},
                             Count{"shm_most_bytes", &spec->shm_most_bytes},
                             Count{"notify_uid", &spec->notify_uid},
                             Count{"stop_signal", &spec->stop_signal},
                             Count{"grace_ms", &spec->grace_ms},
                             Count{"kind", &spec->kind},
                             Count{"timeout_ms", &spec->timeout_ms},
                             Count{"image_uid", &spec->image_uid},
                             Count{"image_gid", &spec->image_gid},
                             Count{"gpu_bytes", &spec->gpu_bytes}}) {
    if (count.key == key) return *count.field = FieldNumber(value), true;
  }
  if (key == "allow_root") return spec->allow_root = value == "1", true;
  if (key == "own_pids") return spec->own_pids = value == "1", true;
  if (key == "container") return spec->container = value == "1", true;
  if (key == "terminal") return spec->terminal = value == "1", true;
  if (key == "marks_beginning") return spec->marks_beginning = value == "1", true;
  return false;
}

int WriteAll(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    data.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

int SyncDirectory(const std::string& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  return error;
}

}  // namespace

std::string EncodeSpec(const SupervisorSpec& spec) {
  std::string out;
  PutField(&out, "user", spec.user);
  PutField(&out, "allow_root", spec.allow_root ? 1 : 0);
  PutField(&out, "directory", spec.directory);
  PutField(&out, "log_file_bytes", spec.log_file_bytes);
  PutField(&out, "log_files", spec.log_files);
  PutField(&out, "lease_file", spec.lease_file);
  PutField(&out, "lapse_signal", spec.lapse_signal);
  PutField(&out, "lapse_grace_ms", spec.lapse_grace_ms);
  PutLists(spec, &out);
  PutField(&out, "memory_bytes", spec.memory_bytes);
  PutField(&out, "data_limit_bytes", spec.data_limit_bytes);
  PutField(&out, "cpus", spec.cpus);
  PutField(&out, "memory_nodes", spec.memory_nodes);
  PutField(&out, "tmp", spec.tmp);
  PutField(&out, "var_tmp", spec.var_tmp);
  PutField(&out, "own_pids", spec.own_pids ? 1 : 0);
  PutField(&out, "first_pid", spec.first_pid);
  PutField(&out, "shm", spec.shm);
  PutField(&out, "shm_bytes", spec.shm_bytes);
  PutField(&out, "shm_most_bytes", spec.shm_most_bytes);
  PutField(&out, "sweep_uid", spec.sweep_uid);
  PutField(&out, "sweep_record", spec.sweep_record);
  PutField(&out, "notify", spec.notify);
  PutField(&out, "notify_uid", spec.notify_uid);
  PutField(&out, "notify_at", spec.notify_at);
  PutField(&out, "door", spec.door);
  PutField(&out, "door_at", spec.door_at);
  PutField(&out, "owner", spec.owner);
  PutField(&out, "root", spec.root);
  PutField(&out, "root_lower", spec.root_lower);
  PutField(&out, "root_layer", spec.root_layer);
  PutField(&out, "prolog_ms", spec.prolog_ms);
  PutField(&out, "epilog_ms", spec.epilog_ms);
  PutField(&out, "container", spec.container ? 1 : 0);
  PutField(&out, "container_user", spec.container_user);
  PutField(&out, "terminal", spec.terminal ? 1 : 0);
  PutField(&out, "marks_beginning", spec.marks_beginning ? 1 : 0);
  PutField(&out, "stop_signal", spec.stop_signal);
  PutField(&out, "grace_ms", spec.grace_ms);
  PutField(&out, "kind", spec.kind);
  PutField(&out, "name", spec.name);
  PutField(&out, "timeout_ms", spec.timeout_ms);
  PutField(&out, "hosts", spec.hosts);
  PutField(&out, "image_uid", spec.image_uid);
  PutField(&out, "image_gid", spec.image_gid);
  if (!spec.cuda_checkpoint.empty()) PutField(&out, "cuda_checkpoint", spec.cuda_checkpoint);
  if (spec.gpu_bytes != 0) PutField(&out, "gpu_bytes", spec.gpu_bytes);
  return out;
}

bool DecodeSpec(const std::string& text, SupervisorSpec* spec) {
  *spec = {};
  return ForEachField(text, [&](std::string_view key, std::string_view value) {
    if (std::vector<std::string>* list = ListOf(key, spec); list != nullptr) {
      list->emplace_back(value);
      return true;
    }
    return SetField(key, value, spec);
  });
}

std::string EncodeStatus(const SupervisorStatus& status) {
  std::string out;
  PutField(&out, "phase", status.phase);
  PutField(&out, "supervisor_pid", status.supervisor_pid);
  PutField(&out, "pid", status.pid);
  PutField(&out, "exit_code", status.exit_code);
  PutField(&out, "exit_signal", status.exit_signal);
  PutField(&out, "cause", status.cause);
  PutField(&out, "message", status.message);
  PutField(&out, "own_fault", status.own_fault ? 1 : 0);
  PutField(&out, "has_output", status.has_output ? 1 : 0);
  PutField(&out, "node_problem", status.node_problem);
  PutField(&out, "takes_reasons", status.takes_reasons ? 1 : 0);
  PutField(&out, "frozen", status.frozen);
  PutField(&out, "thawed_ns", status.thawed_ns);
  PutField(&out, "started_ns", status.started_ns);
  PutField(&out, "saves_devices", status.saves_devices ? 1 : 0);
  PutField(&out, "devices_saved", status.devices_saved ? 1 : 0);
  PutField(&out, "kept_devices", status.kept_devices);
  return out;
}

bool DecodeStatus(const std::string& text, SupervisorStatus* status) {
  *status = {};
  return ForEachField(text, [&](std::string_view key, std::string_view value) {
    if (key == "phase")
      status->phase = FieldNumber(value);
    else if (key == "supervisor_pid")
      status->supervisor_pid = FieldNumber(value);
    else if (key == "pid")
      status->pid = FieldNumber(value);
    else if (key == "exit_code")
      status->exit_code = FieldNumber(value);
    else if (key == "exit_signal")
      status->exit_signal = FieldNumber(value);
    else if (key == "cause")
      status->cause = FieldNumber(value);
    else if (key == "message")
      status->message = value;
    else if (key == "own_fault")
      status->own_fault = value == "1";
    else if (key == "has_output")
      status->has_output = value == "1";
    else if (key == "node_problem")
      status->node_problem = value;
    else if (key == "takes_reasons")
      status->takes_reasons = value == "1";
    else if (key == "frozen")
      status->frozen = FieldNumber(value);
    else if (key == "thawed_ns")
      status->thawed_ns = FieldNumber(value);
    else if (key == "started_ns")
      status->started_ns = FieldNumber(value);
    else if (key == "saves_devices")
      status->saves_devices = value == "1";
    else if (key == "devices_saved")
      status->devices_saved = value == "1";
    else if (key == "kept_devices")
      status->kept_devices = value;
    return true;  // a newer supervisor may write more fields
  });
}

int ReadWholeFile(const std::string& path, std::string* out) {
  out->clear();
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  char buffer[65536];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    const int error = errno;
    if (n > 0) {
      out->append(buffer, static_cast<size_t>(n));
      continue;
    }
    close(fd);
    return n == 0 ? 0 : error;
  }
}

namespace {

int Replace(const std::string& directory, const std::string& name, const std::string& data,
            bool sync) {
  const std::string path = directory + "/" + name;
  const std::string temporary = path + ".tmp";
  const int fd =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return errno;
  int error = WriteAll(fd, data);
  if (error == 0 && sync && fsync(fd) != 0) error = errno;
  if (close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  return error != 0 || !sync ? error : SyncDirectory(directory);
}

}  // namespace

int WriteFileAtomically(const std::string& directory, const std::string& name,
                        const std::string& data) {
  return Replace(directory, name, data, true);
}

int ReplaceFile(const std::string& directory, const std::string& name, const std::string& data) {
  return Replace(directory, name, data, false);
}

int MakeSpare(const std::string& directory, const std::string& name) {
  const std::string path = directory + "/" + name + kSpareSuffix;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  const int error = WriteAll(fd, std::string(kSpareBytes, ' '));
  close(fd);
  return error;
}

// Overwrites in place, as no new blocks can be allocated.
int WriteIntoSpare(const std::string& directory, const std::string& name, const std::string& data) {
  if (data.size() > kSpareBytes) return ENOSPC;
  const std::string path = directory + "/" + name + kSpareSuffix;
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  int error = WriteAll(fd, data);
  if (error == 0 && ftruncate(fd, static_cast<off_t>(data.size())) != 0) error = errno;
  if (error == 0 && fsync(fd) != 0) error = errno;
  close(fd);
  if (error != 0) return error;
  if (rename(path.c_str(), (directory + "/" + name).c_str()) != 0) return errno;
  return SyncDirectory(directory);
}

void RemoveSpare(const std::string& directory, const std::string& name) {
  unlink((directory + "/" + name + kSpareSuffix).c_str());
}

int64_t BoottimeNs() {
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace berth
