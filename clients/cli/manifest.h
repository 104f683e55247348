// Manifests: YAML documents that describe jobs, queues, priority classes and HyperNodes, Berth's
// own or those of other schedulers (docs/users/manifests.md).
//
// A manifest records the position of each field, so that errors of the server are reported with
// FILE:LINE:COLUMN.
#ifndef BERTH_CLIENTS_CLI_MANIFEST_H_
#define BERTH_CLIENTS_CLI_MANIFEST_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/v1/hypernode.pb.h"
#include "berth/v1/job.pb.h"
#include "berth/v1/priority_class.pb.h"
#include "berth/v1/queue.pb.h"
#include "support/yaml_proto.h"

namespace berth {

struct Manifest {
  enum class Kind { kJob, kQueue, kHyperNode, kPriorityClass };
  Kind kind = Kind::kJob;
  v1::Job job;                       // of kind kJob
  v1::Queue queue;                   // of kind kQueue
  v1::HyperNode hyper_node;          // of kind kHyperNode
  v1::PriorityClass priority_class;  // of kind kPriorityClass
  std::string file;
  YamlPosition position;    // of the document
  YamlPositions positions;  // of fields, by path: "name", "spec.groups[1].replicas"
  // For the quick form, which has no file: the option that set each field, by path, such as
  // "--replicas".
  std::map<std::string, std::string> options;

  const std::string& name() const {
    if (kind == Kind::kHyperNode) return hyper_node.name();
    if (kind == Kind::kPriorityClass) return priority_class.name();
    return kind == Kind::kJob ? job.name() : queue.name();
  }
  // "FILE:LINE:COLUMN" of the field, or of the nearest enclosing field in the file.
  std::string Locate(absl::string_view path) const;
  // The option that set the field or an enclosing field, or "".
  std::string Option(absl::string_view path) const;
};

// The position of `path` or of the nearest enclosing path that is known; else `fallback`.
YamlPosition FindPosition(const YamlPositions& positions, absl::string_view path,
                          YamlPosition fallback);

struct ManifestOptions {
  std::set<std::string> ignored;              // keys of other schedulers to ignore, not refuse
  std::map<std::string, std::string> values;  // of parameters of templates
};

// Reads all documents in `text`. INVALID_ARGUMENT with every error, one per line. Adds a line to
// `warnings` for each ignored key.
absl::StatusOr<std::vector<Manifest>> ReadManifests(absl::string_view text, absl::string_view file,
                                                    const ManifestOptions& options,
                                                    std::vector<std::string>* warnings);

// Berth's own form, which reads back to the same resource. The state that the server keeps for it
// follows as comments.
std::string WriteManifest(const v1::Job& job);
std::string WriteManifest(const v1::Queue& queue);
std::string WriteManifest(const v1::HyperNode& hyper_node);
std::string WriteManifest(const v1::PriorityClass& priority_class);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_MANIFEST_H_
