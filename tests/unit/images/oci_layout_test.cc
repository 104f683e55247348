// Which image of a layout a tag selects, and layouts that are broken or hostile.
#include "clients/agent/images/oci_layout.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "tests/unit/images/image_world.h"
#include "tests/unit/images/layout_builder.h"

namespace berth {
namespace {

using namespace testing;  // NOLINT

const std::vector<std::vector<TarEntry>> kLayers = {{{.name = "a", .content = "alpha"}}};

// The digest of the tagged image, or the text of the refusal.
std::string Find(const LayoutBuilder& layout, const std::string& tag,
                 const std::string& architecture = "amd64") {
  const auto image = ReadOciImage(layout.path(), tag, architecture);
  return image.ok() ? image->descriptor.digest() : std::string(image.status().message());
}

bool CheckContains(const std::string& words, const std::string& part) {
  INFO(words);
  CHECK(absl::StrContains(words, part));
  return absl::StrContains(words, part);
}

std::string AddAmd64(LayoutBuilder& layout, const std::string& config, const std::string& more) {
  return layout.AddImage(kLayers, config, more, "amd64");
}

TEST_CASE("a tag names one image of a layout") {
  const TemporaryDirectory files;
  LayoutBuilder layout(files.path());
  const std::string first = AddAmd64(layout, R"({"Env":["V=1"]})", layout.Tag("1"));
  const std::string one = layout.manifest_digest;
  layout.WriteIndex({first});
  CHECK(Find(layout, "") == one);
  CHECK(Find(layout, "1") == one);
  const std::string second = AddAmd64(layout, R"({"Env":["V=2"]})", layout.Tag("h:5/team/x:2"));
  const std::string two = layout.manifest_digest;
  layout.WriteIndex({first, second});
  CHECK(Find(layout, "2") == two);
  CHECK(Find(layout, "h:5/team/x:2") == two);
  CheckContains(Find(layout, "x"), " has no tag x; it has: ");
  CheckContains(Find(layout, ""), " has no tag latest");
  CheckContains(Find(layout, ""), "it has: 1, h:5/team/x:2");
  const std::string other = AddAmd64(layout, "{}", layout.Tag("y:2"));
  layout.WriteIndex({first, second, other});
  CheckContains(Find(layout, "2"), "is ambiguous: h:5/team/x:2, y:2");
  layout.WriteIndex({first, AddAmd64(layout, "{}", layout.Tag("latest"))});
  CHECK(Find(layout, "") == layout.manifest_digest);
}

TEST_CASE("an index of several platforms selects this node's") {
  const TemporaryDirectory files;
  LayoutBuilder layout(files.path());
  const std::string arm =
      layout.AddImage(kLayers, "{}", layout.Platform("linux", "arm64"), "arm64");
  const std::string arm_digest = layout.manifest_digest;
  const std::string amd = AddAmd64(layout, "{}", layout.Platform("linux", "amd64"));
  const std::string amd_digest = layout.manifest_digest;
  const std::string proof =
      layout.AddBlob(kManifestType, "{}", layout.Platform("unknown", "unknown"));
  const std::string index = layout.AddIndex({proof, arm, amd}, layout.Tag("1"));
  layout.WriteIndex({index});
  CHECK(Find(layout, "1") == amd_digest);
  CHECK(Find(layout, "", "arm64") == arm_digest);
  CheckContains(Find(layout, "1", "riscv64"),
                "has no image for linux/riscv64; it has: linux/amd64");
  layout.WriteIndex({arm, amd});  // without tags
  CHECK(Find(layout, "", "arm64") == arm_digest);
  // Each index inside another one: bounded.
  std::string nested = index;
  for (int i = 0; i < 3; ++i) nested = layout.AddIndex({nested});
  layout.WriteIndex({nested});
  CheckContains(Find(layout, ""), "indexes are nested more than 3 deep");
}

TEST_CASE("an image for another machine is refused") {
  const TemporaryDirectory files;
  LayoutBuilder layout(files.path());
  layout.WriteIndex({layout.AddImage(kLayers, "{}", "", "arm64")});
  CheckContains(Find(layout, ""), "the image is for linux/arm64, but this node is linux/amd64");
  layout.WriteIndex({layout.AddBlob("application/vnd.docker.distribution.manifest.v2+json", "{}")});
  CheckContains(Find(layout, ""), "copy it with skopeo copy --format oci");
}

TEST_CASE("only names of blobs are digests") {
  const TemporaryDirectory files;
  const std::string hex(64, 'a');
  CHECK(*BlobPath("/l", "sha256:" + hex) == "/l/blobs/sha256/" + hex);
  for (const std::string& bad :
       {std::string(""), hex, "sha256:" + hex + "a", "sha256:" + hex.substr(1) + "A",
        "sha256:" + hex.substr(1) + "/", "sha512:" + hex, std::string("sha256:../../../etc/shadow"),
        "sha256:" + std::string(64, '.'), "sha256:" + hex.substr(1) + std::string(1, '\0')}) {
    CHECK(absl::IsInvalidArgument(BlobPath("/l", bad).status()));
    LayoutBuilder layout(files.path());
    layout.WriteIndex({layout.Descriptor(kManifestType, "sha256:../../../etc/shadow", 5)});
    CheckContains(Find(layout, ""), "is not a digest");
  }
}

TEST_CASE("damage is reported by its place") {
  const TemporaryDirectory files;
  LayoutBuilder layout(files.path());
  layout.WriteIndex({AddAmd64(layout, "{}", "")});
  REQUIRE(Find(layout, "") == layout.manifest_digest);
  const std::string layer = layout.layer_digests[0];
  const std::string file = layout.BlobFile(layer);
  SECTION("a layer with another size") {
    std::ofstream(file, std::ios::app) << "x";
    CheckContains(Find(layout, ""),
                  "blob " + layer + " of " + files.path() + " is damaged: it has ");
  }
  SECTION("a layer with another content") {
    std::ofstream(file, std::ios::in | std::ios::out) << "z";
    const auto image = ReadOciImage(files.path(), "", "amd64");
    REQUIRE(image.ok());
    const absl::Status status = VerifyLayers(files.path(), *image);
    CHECK(absl::IsDataLoss(status));
    CheckContains(std::string(status.message()), "blob " + layer);
  }
  SECTION("a missing layer") {
    unlink(file.c_str());
    CheckContains(Find(layout, ""), "blob " + layer + " of " + files.path() + " is missing");
  }
  SECTION("a link instead of a layer") {
    unlink(file.c_str());
    REQUIRE(symlink("/etc/passwd", file.c_str()) == 0);
    CheckContains(Find(layout, ""), "is a link");
  }
  SECTION("a FIFO instead of a manifest does not block") {
    unlink(layout.BlobFile(layout.manifest_digest).c_str());
    REQUIRE(mkfifo(layout.BlobFile(layout.manifest_digest).c_str(), 0600) == 0);
    CheckContains(Find(layout, ""), "is not a regular file");
  }
  SECTION("an altered manifest") {
    std::ofstream(layout.BlobFile(layout.manifest_digest), std::ios::app) << " ";
    CheckContains(Find(layout, ""), "blob " + layout.manifest_digest + " of " + files.path() +
                                        " is damaged: its digest does not match");
  }
}

TEST_CASE("an invalid or too large index is refused") {
  const TemporaryDirectory files;
  LayoutBuilder layout(files.path());
  CheckContains(Find(layout, ""), "index.json is missing");
  const auto with = [&](const std::string& text) {
    std::ofstream(files.path() + "/index.json") << text;
    return Find(layout, "");
  };
  CheckContains(with("[]"), "does not follow the OCI image specification");
  CheckContains(with("{\"manifests\":[{\"size\":\"much\"}]}"),
                "does not follow the OCI image specification");
  CheckContains(with(std::string(100'000, '[')), "does not follow the OCI image specification");
  CheckContains(with("{}"), "it has: no tags");
  CheckContains(with(std::string((4 << 20) + 1, ' ')), "is too large");
  CheckContains(with(R"({"manifests":[{"mediaType":"a\u0000b\n","digest":"x"}]})"),
                R"(a\x00\x62\n)");
}

}  // namespace
}  // namespace berth
