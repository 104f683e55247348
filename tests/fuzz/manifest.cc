// Manifests of Berth and Volcano: what is read can be written and reads back as the same message.
#include "clients/cli/manifest.h"

#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/target.h"

namespace berth::fuzz {
namespace {

template <class Message>
void Same(const Message& read, const Message& again, const std::string& written) {
  if (read.DebugString() == again.DebugString()) return;
  std::fprintf(stderr, "read:\n%s\nwritten:\n%s\nread again:\n%s\n", read.DebugString().c_str(),
               written.c_str(), again.DebugString().c_str());
  std::abort();
}

std::string Write(const Manifest& manifest) {
  switch (manifest.kind) {
    case Manifest::Kind::kJob:
      return WriteManifest(manifest.job);
    case Manifest::Kind::kQueue:
      return WriteManifest(manifest.queue);
    case Manifest::Kind::kHyperNode:
      return WriteManifest(manifest.hyper_node);
  }
  std::abort();
}

void CheckRoundTrip(const Manifest& manifest) {
  const std::string written = Write(manifest);
  const auto again = ReadManifests(written, "again", {}, nullptr);
  if (!again.ok() || again->size() != 1) {
    std::fprintf(stderr, "written:\n%s\n%s\n", written.c_str(), again.status().ToString().c_str());
    std::abort();
  }
  Same(manifest.job, again->at(0).job, written);
  Same(manifest.queue, again->at(0).queue, written);
  Same(manifest.hyper_node, again->at(0).hyper_node, written);
}

}  // namespace

void FuzzOne(absl::string_view input) {
  std::vector<std::string> warnings;
  const auto read = ReadManifests(input, "f", {.ignored = {"plugins", "schedulerName"}}, &warnings);
  if (!read.ok()) return;
  for (const Manifest& manifest : *read) CheckRoundTrip(manifest);
}

}  // namespace berth::fuzz
