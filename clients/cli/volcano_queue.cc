#include "absl/strings/str_cat.h"
#include "berth/volcano/v1/manifests.pb.h"
#include "clients/cli/volcano.h"

namespace berth {
namespace {

using QueueAmounts = google::protobuf::Map<std::string, std::string>;

class QueueConverter {
 public:
  QueueConverter(const volcano::v1::Queue& in, const YamlPositions& source, YamlErrors* errors,
                 YamlErrors* warnings, Manifest* out)
      : in_(in), source_(source), errors_(*errors), warnings_(*warnings), out_(*out) {}

  void Convert() {
    v1::QueueSpec& spec = *out_.queue.mutable_spec();
    out_.queue.set_name(in_.metadata().name());
    if (in_.metadata().name().empty()) Error("metadata.name", "\"metadata.name\" is missing");
    if (in_.metadata().annotations_size() > 0)
      Warn("metadata.annotations", "annotations are left out: queues have none in Berth");
    const std::string& space = in_.metadata().namespace_();
    if (!space.empty()) Warn("metadata.namespace", "namespace is left out: queues have none");
    ConvertOrder(in_.spec().dequeue_strategy());
    spec.mutable_labels()->insert(in_.metadata().labels().begin(), in_.metadata().labels().end());
    if (in_.spec().has_weight()) spec.set_weight(in_.spec().weight());
    if (in_.spec().has_reclaimable()) spec.set_reclaimable(in_.spec().reclaimable());
    if (in_.spec().parent() != "root") spec.set_parent(in_.spec().parent());
    spec.set_priority(in_.spec().priority());
    if (in_.spec().capability_size() > 0)
      Amount("capability", in_.spec().capability(), spec.mutable_limit());
    if (in_.spec().deserved_size() > 0)
      Amount("deserved", in_.spec().deserved(), spec.mutable_deserved());
    if (in_.spec().guarantee().resource_size() > 0) {
      Amount("guarantee.resource", in_.spec().guarantee().resource(), spec.mutable_guarantee());
    }
    RememberPlaces();
  }

 private:
  void Error(const std::string& path, const std::string& text) {
    errors_.Add(FindPosition(source_, path, out_.position), text);
  }

  void Warn(const std::string& path, const std::string& text) {
    warnings_.Add(FindPosition(source_, path, out_.position), text);
  }

  void ConvertOrder(const std::string& strategy) {
    if (strategy == "fifo") {
      out_.queue.mutable_spec()->set_order(v1::QueueSpec::FIFO_STRICT);
    } else if (strategy == "traverse") {
      out_.queue.mutable_spec()->set_order(v1::QueueSpec::FIFO_SKIP);
    } else if (!strategy.empty()) {
      Error("spec.dequeue_strategy",
            absl::StrCat("dequeueStrategy \"", strategy, "\" is not traverse or fifo"));
    }
  }

  void Amount(const std::string& key, const QueueAmounts& amounts, v1::ResourceList* list) {
    for (const auto& amount : std::map<std::string, std::string>(amounts.begin(), amounts.end())) {
      const std::string path = absl::StrCat("spec.", key, "[\"", amount.first, "\"]");
      const std::string name = BerthResource(amount.first);
      if (name.empty()) {
        Error(path, absl::StrCat("unsupported resource \"", amount.first, "\""));
        continue;
      }
      const absl::StatusOr<int64_t> value = ParseKubernetesAmount(name, amount.second);
      if (!value.ok()) {
        Error(path, absl::StrCat(amount.first, ": ", value.status().message()));
      } else if (name == "cpu") {
        list->set_cpu_millis(*value);
      } else if (name == "memory") {
        list->set_memory_bytes(*value);
      } else if (name == "scratch") {
        list->set_scratch_bytes(*value);
      } else {
        (*list->mutable_counts())[name] += static_cast<double>(*value);
      }
    }
  }

  void RememberPlaces() {
    static const std::pair<const char*, const char*> kPlaces[] = {
        {"name", "metadata.name"},          {"spec.labels", "metadata.labels"},
        {"spec.limit", "spec.capability"},  {"spec.weight", "spec.weight"},
        {"spec.deserved", "spec.deserved"}, {"spec.guarantee", "spec.guarantee"},
        {"spec.parent", "spec.parent"},     {"spec.reclaimable", "spec.reclaimable"},
        {"spec.priority", "spec.priority"}, {"spec.order", "spec.dequeue_strategy"},
    };
    for (const auto& place : kPlaces) {
      out_.positions[place.first] = FindPosition(source_, place.second, out_.position);
    }
  }

  const volcano::v1::Queue& in_;
  const YamlPositions& source_;
  YamlErrors& errors_;
  YamlErrors& warnings_;
  Manifest& out_;
};

}  // namespace

void ReadVolcanoQueue(const YamlNode& document, const ManifestOptions& options, YamlErrors* errors,
                      YamlErrors* skipped, Manifest* manifest) {
  manifest->kind = Manifest::Kind::kQueue;
  volcano::v1::Queue queue;
  YamlPositions source;
  const int before = errors->count();
  ReadYamlNode(document, &queue, errors, VolcanoReadOptions(options, skipped, &source));
  if (errors->count() == before) QueueConverter(queue, source, errors, skipped, manifest).Convert();
}

}  // namespace berth
