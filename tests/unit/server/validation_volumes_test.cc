// Volumes of a group: which are accepted, and that accepted ones reach the agent and people whole.
#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "server/controllers/launch.h"
#include "server/convert/cold.h"
#include "server/validation/findings.h"
#include "server/validation/volumes.h"

namespace berth::testing {
namespace {

std::string Problem(const v1::TaskGroup& group) {
  Findings findings;
  const FieldPath root;
  CheckVolumes(FieldPath(root, "g"), group, findings);
  return findings.ok() ? "" : std::string(findings.ToStatus().message());
}

v1::Volume* Add(v1::TaskGroup& group, const std::string& path) {
  v1::Volume* volume = group.add_volumes();
  volume->set_path(path);
  volume->mutable_scratch();
  return volume;
}

v1::VolumeFile* AddFile(v1::Volume* volume, const std::string& name) {
  v1::VolumeFile* file = volume->mutable_files()->add_files();
  file->set_name(name);
  return file;
}

v1::TaskGroup OneOfEach() {
  v1::TaskGroup group;
  Add(group, "/data")->set_host_path("/srv/data/imagenet");
  group.mutable_volumes(0)->set_read_only(true);
  Add(group, "/tmp")->mutable_tmpfs()->set_size_bytes(1 << 30);
  Add(group, "/scratch");
  v1::Volume* files = Add(group, "/etc/app");
  AddFile(files, "conf.d/a.yaml")->set_content("a: 1\n");
  AddFile(files, "run.sh")->set_mode("0755");
  AddFile(Add(group, "/etc/one.conf"), "")->set_content("one");
  return group;
}

TEST_CASE("each kind of volume is accepted, and kept for the agent and for people") {
  v1::JobSpec spec;
  *spec.add_groups() = OneOfEach();
  CHECK(Problem(spec.groups(0)) == "");
  v1::JobSpec read;
  read.add_groups();
  REQUIRE(MergeCold(EncodeCold(spec), &read).ok());
  CHECK(read.groups(0).volumes().SpaceUsedExcludingSelfLong() > 0);
  REQUIRE(read.groups(0).volumes_size() == 5);
  for (int i = 0; i < 5; ++i) {
    CHECK(read.groups(0).volumes(i).SerializeAsString() ==
          spec.groups(0).volumes(i).SerializeAsString());
  }
  auto job = std::make_shared<LaunchJob>();
  job->group_names = {"g"};
  job->group_sizes = {1};
  job->group_rigid = {false};
  job->ranks.tasks.resize(1);
  job->ranks.node_members = {1};
  LaunchOrder order{.kind = OrderKind::kPrepare, .job = job};
  const v1::ServerMessage message = ToMessage(order, read);
  CHECK(message.prepare().launch().volumes_size() == 5);
}

TEST_CASE("paths of volumes") {
  struct Case {
    const char* path;
    const char* problem;  // empty: none
  };
  for (const Case& one :
       {Case{"/data", ""}, Case{"/run/data", ""}, Case{"/devices", ""},
        Case{"data", "must be an absolute path"}, Case{"/", "absolute path"},
        Case{"/a/../b", "without"}, Case{"/a//b", "without"}, Case{"/a/", "without"},
        Case{"/a\nb", "without"}, Case{"/proc", "the task's processes are there"},
        Case{"/sys/kernel", "the kernel's files"}, Case{"/dev/shm", "devices"},
        Case{"/run", "Berth's own files"}, Case{"/run/berth/x", "Berth's own"}}) {
    v1::TaskGroup group;
    Add(group, one.path);
    INFO(one.path);
    const std::string problem = Problem(group);
    if (*one.problem == '\0')
      CHECK(problem == "");
    else
      CHECK(problem.find(one.problem) != std::string::npos);
  }
  v1::TaskGroup group;
  Add(group, "/" + std::string(512, 'a'));
  CHECK(Problem(group).find("at most 512 bytes") != std::string::npos);
}

TEST_CASE("what cannot work is refused by name") {
  struct Case {
    const char* problem;
    std::function<void(v1::TaskGroup&)> change;
  };
  const std::vector<Case> cases = {
      {"volumes[0] has the same path", [](auto& g) { Add(g, "/data"); }},
      {"one would be inside the other", [](auto& g) { Add(g, "/data/sub"); }},
      {"one would be inside the other", [](auto& g) { Add(g, "/etc"); }},
      {"at most 64 volumes",
       [](auto& g) {
         for (int i = 0; i < 64; ++i) Add(g, "/v" + std::to_string(i));
       }},
      {"one of host_path, tmpfs, scratch and files", [](auto& g) { Add(g, "/x")->clear_source(); }},
      {"must be an absolute path of at most 4096",
       [](auto& g) { Add(g, "/x")->set_host_path("a"); }},
      {"without", [](auto& g) { Add(g, "/x")->set_host_path("/a/../b"); }},
      {"nobody could write", [](auto& g) { Add(g, "/x")->set_read_only(true); }},
      {"must be 0..", [](auto& g) { Add(g, "/x")->mutable_tmpfs()->set_size_bytes(-1); }},
      {"must be 1..256 files", [](auto& g) { Add(g, "/x")->mutable_files(); }},
      {"only a single file can be the volume itself",
       [](auto& g) {
         v1::Volume* volume = Add(g, "/x");
         AddFile(volume, "");
         AddFile(volume, "a");
       }},
      {"must be a relative path", [](auto& g) { AddFile(Add(g, "/x"), "/etc/passwd"); }},
      {"must be a relative path", [](auto& g) { AddFile(Add(g, "/x"), "../x"); }},
      {"cannot be together with \"a\"",
       [](auto& g) {
         v1::Volume* volume = Add(g, "/x");
         AddFile(volume, "a");
         AddFile(volume, "a/b");
       }},
      {"three octal digits", [](auto& g) { AddFile(Add(g, "/x"), "a")->set_mode("0999"); }},
      {"three octal digits", [](auto& g) { AddFile(Add(g, "/x"), "a")->set_mode("4755"); }},
      {"at most 131072 bytes in all",
       [](auto& g) { AddFile(Add(g, "/x"), "a")->set_content(std::string(131073, 'x')); }},
  };
  for (const Case& one : cases) {
    v1::TaskGroup group = OneOfEach();
    one.change(group);
    INFO(one.problem);
    CHECK(Problem(group).find(one.problem) != std::string::npos);
  }
}

}  // namespace
}  // namespace berth::testing
