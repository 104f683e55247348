// Volumes of tasks without an image, with real processes; and the node's rules for hostPath.
// Without root or namespaces, the cases with processes do nothing and print a warning.
#include "clients/agent/volumes.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "clients/agent/supervisor/mounts.h"
#include "clients/agent/supervisor/namespaces.h"
#include "tests/unit/agent/process_world.h"

namespace berth {
namespace {

using namespace testing;  // NOLINT

bool Possible() {
  if (geteuid() == 0 && getpwnam("nobody") != nullptr && TryNamespaces() == 0) return true;
  WARN("no root or no namespaces: not tested");
  return false;
}

void Write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// A directory that the node offers, with mount points beside it.
struct World : Fixture {
  World() : Fixture("/run"), place("/run") {
    chmod(place.path().c_str(), 0755);
    for (const char* name : {"/offered", "/other", "/point", "/offered/sub", "/offered/closed"})
      mkdir((place.path() + name).c_str(), 0755);
    chmod((place.path() + "/offered/closed").c_str(), 0700);
    mkdir((place.path() + "/offered/closed/in").c_str(), 0755);
    Write(place.path() + "/offered/sub/data", "the data\n");
    Write(place.path() + "/other/secret", "s3cr3t\n");
    Write(place.path() + "/file", "the node's\n");
    chown((place.path() + "/offered/sub").c_str(), 65534, 65534);
    config.mutable_volumes()->add_host_paths()->set_path(place.path() + "/offered");
    user = "nobody";
    Restart();
  }
  std::string At(const std::string& name) const { return place.path() + name; }
  v1::Volume* Add(const std::string& path) {
    v1::Volume* volume = launch.add_volumes();
    volume->set_path(path);
    return volume;
  }
  std::string Run(const std::string& script) {
    Start(kTask, script);
    Await(kTask, Kind::kExited);
    return Log(kTask);
  }
  TaskEvent Refused() {
    launch.add_command("true");
    runner->Prepare(kTask, launch, true);
    runner->Poll().swap(seen);
    if (!seen.empty() && seen.front().kind == Kind::kPrepared) {
      seen.clear();
      runner->Start(kTask, launch, {});
    }
    return Await(kTask, Kind::kRefused);
  }
  TemporaryDirectory place;
};

TEST_CASE("a hostPath, a tmpfs, scratch and files are where the task asked for them") {
  if (!Possible()) return;
  World f;
  for (const char* name : {"/point/host", "/point/mem", "/point/scratch", "/point/files"})
    mkdir(f.At(name).c_str(), 0755);
  f.Add(f.At("/point/host"))->set_host_path(f.At("/offered/sub"));
  f.Add(f.At("/point/mem"))->mutable_tmpfs()->set_size_bytes(1 << 20);
  f.Add(f.At("/point/scratch"))->mutable_scratch();
  v1::Volume* files = f.Add(f.At("/point/files"));
  v1::VolumeFile* file = files->mutable_files()->add_files();
  file->set_name("conf.d/run.sh");
  file->set_content("echo ran\n");
  file->set_mode("0755");
  files = f.Add(f.At("/file"));
  files->mutable_files()->add_files()->set_content("the job's\n");
  const std::string out = f.Run(
      "cd " + f.At("/point") +
      "; cat host/data; echo new > host/new; df -k mem | tail -1 | awk '{print $2}'; touch mem/x; "
      "touch scratch/x; ls $BERTH_SCRATCH/volume-2; stat -c '%U %a' files/conf.d/run.sh; "
      "sh files/conf.d/run.sh; (touch files/x) 2>/dev/null || echo sealed; cat " +
      f.At("/file"));
  CHECK(out == "the data\n1024\nx\nnobody 755\nran\nsealed\nthe job's\n");
  std::string text;
  ReadWholeFile(f.At("/offered/sub/new"), &text);
  CHECK(text == "new\n");
  ReadWholeFile(f.At("/file"), &text);
  CHECK(text == "the node's\n");  // nothing of it on the node
  CHECK(std::filesystem::is_empty(f.At("/point/host")));
}

TEST_CASE("a read-only hostPath cannot be written") {
  if (!Possible()) return;
  World f;
  v1::Volume* volume = f.Add(f.At("/point"));
  volume->set_host_path(f.At("/offered/sub"));
  volume->set_read_only(true);
  CHECK(f.Run("(echo x > " + f.At("/point/data") + ") 2>/dev/null || echo sealed") == "sealed\n");
}

TEST_CASE("only what the node offers, and only what the user can reach, becomes a volume") {
  if (!Possible()) return;
  World f;
  const auto refusal = [&](const std::string& path) {
    f.launch.Clear();
    f.seen.clear();
    f.Add(f.At("/point"))->set_host_path(path);
    const TaskEvent event = f.Refused();
    CHECK(event.fault == v1::TaskReport::JOB);
    f.runner->Remove(kTask);
    return event.message;
  };
  CHECK(refusal(f.At("/other")).find("is not below what this node offers (volumes.hostPaths") !=
        std::string::npos);
  CHECK(refusal(f.At("/offered/../other")).find("volumes.hostPaths") != std::string::npos);
  CHECK(refusal(f.At("/offered-too")).find("volumes.hostPaths") != std::string::npos);
  symlink("../../other", f.At("/offered/sub/link").c_str());
  CHECK(refusal(f.At("/offered/sub/link")).find("is a link that leads out of") !=
        std::string::npos);
  symlink(f.At("/other").c_str(), f.At("/offered/sub/far").c_str());
  CHECK(refusal(f.At("/offered/sub/far")).find("is a link that leads out of") != std::string::npos);
  CHECK(refusal(f.At("/offered/closed/in")).find("Permission denied") != std::string::npos);
  CHECK(refusal(f.At("/offered/nothing")).find("No such file") != std::string::npos);
  mkfifo(f.At("/offered/fifo").c_str(), 0666);
  CHECK(refusal(f.At("/offered/fifo")).find("neither a directory nor a file") != std::string::npos);
}

TEST_CASE("links inside of what the node offers are followed") {
  if (!Possible()) return;
  World f;
  symlink("sub", f.At("/offered/latest").c_str());
  f.Add(f.At("/point"))->set_host_path(f.At("/offered/latest"));
  CHECK(f.Run("cat " + f.At("/point/data")) == "the data\n");
}

TEST_CASE("mount points of tasks without an image must exist, and hide nothing of the agent") {
  if (!Possible()) return;
  World f;
  f.Add(f.At("/nowhere"))->mutable_scratch();
  CHECK(f.Refused().message.find("does not exist on the node") != std::string::npos);
  f.runner->Remove(kTask);
  f.launch.Clear();
  f.Add(f.state.path())->mutable_scratch();
  CHECK(f.Refused().message.find("would hide the agent's directory") != std::string::npos);
  f.runner->Remove(kTask);
  f.launch.Clear();
  f.Add("/run")->mutable_scratch();
  CHECK(f.Refused().message.find("would hide the agent's directory") != std::string::npos);
}

TEST_CASE("a hostPath may be for some queues and users, or read-only") {
  config::v1::Agent config;
  config::v1::HostPath* offered = config.mutable_volumes()->add_host_paths();
  offered->set_path("/srv");
  offered->set_read_only(true);
  offered->add_queues("research");
  offered->add_users("ann");
  v1::TaskLaunch launch;
  launch.set_image("x");
  launch.set_queue("research");
  v1::Volume* volume = launch.add_volumes();
  volume->set_path("/data");
  volume->set_host_path("/srv/data");
  volume->set_read_only(true);
  TaskUser user;
  user.name = "ann";
  CHECK(CheckVolumes(config, launch, user, {}).ok());
  volume->set_read_only(false);
  CHECK(CheckVolumes(config, launch, user, {}).message() ==
        "volume /data: this node offers /srv only with readOnly: true (volumes.hostPaths of its "
        "agent)");
  volume->set_read_only(true);
  launch.set_queue("other");
  CHECK(CheckVolumes(config, launch, user, {}).message() ==
        "volume /data: this node offers /srv to jobs of other queues than other "
        "(volumes.hostPaths of its agent)");
  launch.set_queue("research");
  user.name = "bob";
  CHECK(CheckVolumes(config, launch, user, {}).message() ==
        "volume /data: this node offers /srv to tasks of other users than bob (volumes.hostPaths "
        "of its agent)");
}

TEST_CASE("no volume is inside of what links of an image make of the node's mounts") {
  const TemporaryDirectory image;
  mkdir((image.path() + "/usr").c_str(), 0755);
  mkdir((image.path() + "/usr/lib64").c_str(), 0755);
  symlink("usr/lib64", (image.path() + "/lib64").c_str());
  symlink("/../../usr/lib64", (image.path() + "/far").c_str());  // stays in the image
  v1::TaskLaunch launch;
  launch.add_volumes()->mutable_scratch();
  const auto check = [&](const std::string& volume, const std::string& mounted) {
    launch.mutable_volumes(0)->set_path(volume);
    return CheckImagePoints(launch, image.path(), {mounted});
  };
  CHECK(check("/usr/lib64/x", "/lib64").message() ==
        "volume /usr/lib64/x: is inside /usr/lib64, where the image has /lib64, which is not the "
        "image's own");
  CHECK(!check("/usr/lib64/new/x/y", "/lib64/new/x").ok());  // new/x: does not exist there
  CHECK(!check("/usr/lib64/x", "/far").ok());
  CHECK(!check("/usr/lib64/x", "/usr/lib64").ok());
  CHECK(check("/usr/lib64", "/lib64").ok());  // over it
  CHECK(check("/usr/lib64/x", "/lib64/y").ok());
  CHECK(check("/usr/lib6", "/lib64").ok());
}

TEST_CASE("a tmpfs is never larger than the task's memory, or than the node's") {
  config::v1::Agent config;
  config.set_memory_bytes(1000);
  v1::TaskLaunch launch;
  launch.set_image("x");
  const auto bytes = [&](int64_t wanted, int64_t memory) {
    launch.clear_volumes();
    launch.add_volumes()->set_path("/m");
    launch.mutable_volumes(0)->mutable_tmpfs()->set_size_bytes(wanted);
    launch.set_memory_bytes(memory);
    SupervisorSpec spec;
    FillVolumes(config, launch, {}, "/d", "/s", &spec);
    VolumeMount mount;
    REQUIRE(DecodeVolume(spec.volumes.at(0), &mount));
    return mount.bytes;
  };
  CHECK(bytes(0, 0) == 500);
  CHECK(bytes(5000, 0) == 1000);
  CHECK(bytes(5000, 300) == 300);
  CHECK(bytes(0, 300) == 300);
  CHECK(bytes(200, 300) == 200);
}

TEST_CASE("no volume is inside of what the operator mounts into images") {
  config::v1::Agent config;
  config.mutable_images()->add_binds("/opt/driver");
  v1::TaskLaunch launch;
  launch.set_image("x");
  launch.add_volumes()->set_path("/opt/driver/lib");
  launch.mutable_volumes(0)->mutable_scratch();
  CHECK(CheckVolumes(config, launch, {}, {}).message() ==
        "volume /opt/driver/lib: is inside /opt/driver, which this node mounts into all images "
        "(images.binds)");
  launch.mutable_volumes(0)->set_path("/opt/driver");
  CHECK(CheckVolumes(config, launch, {}, {}).ok());
}

TEST_CASE("what is offered is checked when the agent starts") {
  config::v1::Volumes volumes;
  for (const char* path : {"/srv", "/srv/data", "relative", "/a/../b", "/ok", "/ok"})
    volumes.add_host_paths()->set_path(path);
  CHECK(VolumeProblems(volumes) ==
        std::vector<std::string>{
            "volumes.hostPaths[1].path: /srv/data is inside /srv, which is offered, too",
            "volumes.hostPaths[2].path: must be an absolute path without \"..\", is \"relative\"",
            "volumes.hostPaths[3].path: must be an absolute path without \"..\", is \"/a/../b\"",
            "volumes.hostPaths[5].path: /ok is inside /ok, which is offered, too"});
}

TEST_CASE("a volume's text is read as it was written") {
  const VolumeMount volume = {.name = "/data",
                              .at = "/x",
                              .root = "/srv",
                              .below = "",
                              .own = true,
                              .read_only = true,
                              .bytes = 77};
  VolumeMount read;
  REQUIRE(DecodeVolume(EncodeVolume(volume), &read));
  CHECK(EncodeVolume(read) == EncodeVolume(volume));
  CHECK(read.bytes == 77);
  CHECK_FALSE(DecodeVolume("/data\n/x", &read));
}

}  // namespace
}  // namespace berth
