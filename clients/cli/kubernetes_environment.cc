#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "clients/cli/kubernetes_pod.h"
#include "clients/cli/volcano.h"

namespace berth {
namespace {

using kubernetes::v1::Container;
using kubernetes::v1::EnvVar;

constexpr char kSecretWarning[] =
    " of a Secret becomes part of the job, and whoever may read the job reads it";

// Collects the variables of one container. A later one replaces an earlier one of the same name.
class EnvironmentConverter {
 public:
  EnvironmentConverter(const std::string& path, const Container& container,
                       const PodSurroundings& surroundings, ForeignJob& job, Variables& known)
      : path_(path),
        container_(container),
        surroundings_(surroundings),
        job_(job),
        document_(job.document()),
        known_(known) {}

  void Convert() {
    for (const auto& [name, text] : surroundings_.variables) Add(name, text, path_, true);
    for (int i = 0; i < container_.env_from_size(); ++i) {
      AddAll(absl::StrCat(path_, ".env_from[", i, "]"), container_.env_from(i));
    }
    for (int i = 0; i < container_.env_size(); ++i) {
      AddOne(absl::StrCat(path_, ".env[", i, "]"), container_.env(i));
    }
  }

  std::vector<std::string> Finish(const std::string& to, v1::TaskGroup* group) {
    std::vector<std::string> assignments;
    const bool has_command = !container_.command().empty();
    for (const Variable& one : variables_) {
      if (one.at_start) {
        const bool own = surroundings_.variables.count(one.name) == 0;
        if (has_command || own) assignments.push_back(absl::StrCat(one.name, "=", one.value));
        if (!has_command && !own) document_.Warn(path_, NotSet(one));
        continue;
      }
      job_.Place(absl::StrCat(to, ".env[", group->env_size(), "]"), one.path);
      v1::EnvVar& variable = *group->add_env();
      variable.set_name(one.name);
      variable.set_value(one.value);
    }
    return assignments;
  }

 private:
  struct Variable {
    std::string name;
    std::string value;  // of one that is set at the start: a word of a command
    std::string path;
    bool at_start = false;
  };

  static std::string NotSet(const Variable& one) {
    return absl::StrCat("the image's own command does not get ", one.name, ": it has ", one.value);
  }

  void Add(const std::string& name, const std::string& value, const std::string& path,
           bool at_start) {
    known_[name] = at_start ? value : absl::StrCat("${", name, "}");
    for (Variable& present : variables_) {
      if (present.name == name) return present = {name, value, path, at_start}, void();
    }
    variables_.push_back({name, value, path, at_start});
  }

  void AddAll(const std::string& path, const kubernetes::v1::EnvFrom& from) {
    if (from.has_config_map_ref()) {
      const auto& maps = document_.file().config_maps;
      const auto found = maps.find(from.config_map_ref().name());
      if (found == maps.end())
        return NotInFile(path, "ConfigMap", from.config_map_ref().name(),
                         from.config_map_ref().optional());
      for (const auto& [key, value] : Sorted(found->second.data()))
        AddIfName(path, from.prefix() + key, value);
    }
    if (from.has_secret_ref()) {
      const auto& secrets = document_.file().secrets;
      const auto found = secrets.find(from.secret_ref().name());
      if (found == secrets.end())
        return NotInFile(path, "Secret", from.secret_ref().name(), from.secret_ref().optional());
      document_.Warn(path, absl::StrCat("the content", kSecretWarning));
      for (const auto& [key, value] : SecretValues(found->second))
        AddIfName(path, from.prefix() + key, value);
    }
  }

  template <class Map>
  static std::map<std::string, std::string> Sorted(const Map& map) {
    return {map.begin(), map.end()};
  }
  static std::map<std::string, std::string> SecretValues(const kubernetes::v1::Secret& secret) {
    std::map<std::string, std::string> values = Sorted(secret.data());
    for (const auto& [key, value] : secret.string_data()) values[key] = value;
    return values;
  }

  // Kubernetes leaves out keys that cannot be names of variables, too.
  void AddIfName(const std::string& path, const std::string& name, const std::string& value) {
    size_t position = 0;
    if (NextName(name, &position) == name &&
        !absl::ascii_isdigit(static_cast<unsigned char>(name[0])))
      return Add(name, value, path, false);
    document_.Warn(path, absl::StrCat("\"", name, "\" cannot name a variable, and is left out"));
  }

  void NotInFile(const std::string& path, const char* kind, const std::string& name,
                 bool optional) {
    if (optional) return;
    document_.Error(path, absl::StrCat(kind, " \"", name,
                                       "\" is not in this file, and Berth stores none: put its "
                                       "document into the file"));
  }

  void AddOne(const std::string& path, const EnvVar& variable) {
    if (variable.name() == "MASTER_ADDR" && variable.value() != "" && NamesTask(variable.value())) {
      return document_.Warn(path,
                            "MASTER_ADDR is left out: it names a host that only Kubernetes "
                            "knows, and each task has the address of rank 0");
    }
    if (variable.has_value_from()) return AddFrom(path + ".value_from", variable);
    if (RefersToVariable(variable.value(), known_))
      return Add(variable.name(), CommandWord(variable.value(), known_), path, true);
    Add(variable.name(), PlainValue(variable.value()), path, false);
  }

  // "train-worker-0-0.train" in a job that is named "train".
  bool NamesTask(const std::string& host) const {
    const std::string& name = job_.manifest().job.name();
    return !name.empty() && absl::StartsWith(host, name + "-");
  }

  void AddFrom(const std::string& path, const EnvVar& variable) {
    const kubernetes::v1::ValueFrom& from = variable.value_from();
    if (from.has_config_map_key_ref()) {
      const auto& ref = from.config_map_key_ref();
      const auto& maps = document_.file().config_maps;
      const auto found = maps.find(ref.name());
      if (found == maps.end()) return NotInFile(path, "ConfigMap", ref.name(), ref.optional());
      AddKey(path, variable.name(), ref, Sorted(found->second.data()));
    } else if (from.has_secret_key_ref()) {
      const auto& ref = from.secret_key_ref();
      const auto& secrets = document_.file().secrets;
      const auto found = secrets.find(ref.name());
      if (found == secrets.end()) return NotInFile(path, "Secret", ref.name(), ref.optional());
      document_.Warn(path, absl::StrCat("the value", kSecretWarning));
      AddKey(path, variable.name(), ref, SecretValues(found->second));
    } else if (from.has_field_ref()) {
      AddField(path, variable.name(), from.field_ref().field_path());
    } else if (from.has_resource_field_ref()) {
      AddResource(path, variable.name(), from.resource_field_ref());
    } else {
      document_.Missing(path, "valueFrom");
    }
  }

  void AddKey(const std::string& path, const std::string& name, const kubernetes::v1::KeyRef& ref,
              const std::map<std::string, std::string>& data) {
    const auto found = data.find(ref.key());
    if (found != data.end()) return Add(name, found->second, path, false);
    if (ref.optional()) return;
    document_.Error(path, absl::StrCat("\"", ref.name(), "\" has no key \"", ref.key(), "\""));
  }

  void AddField(const std::string& path, const std::string& name, const std::string& field) {
    static const Variables kFields = {{"metadata.name", "${BERTH_JOB}-${BERTH_TASK}"},
                                      {"spec.nodeName", "${BERTH_NODE}"},
                                      {"metadata.namespace", "default"}};
    for (const Variables* fields : {&surroundings_.fields, &kFields}) {
      const auto found = fields->find(field);
      if (found != fields->end())
        return Add(name, found->second, path, absl::StrContains(found->second, "$"));
    }
    document_.Error(path, absl::StrCat("fieldRef ", field,
                                       ": a task knows its BERTH_JOB, BERTH_TASK, BERTH_NODE and "
                                       "MASTER_ADDR, and nothing of a pod"));
  }

  void AddResource(const std::string& path, const std::string& name,
                   const kubernetes::v1::ResourceFieldRef& ref) {
    absl::string_view resource = ref.resource();
    const bool limit = absl::ConsumePrefix(&resource, "limits.");
    if (!limit) absl::ConsumePrefix(&resource, "requests.");
    const auto& resources = container_.resources();
    const auto& amounts = limit ? resources.limits() : resources.requests();
    const auto found = amounts.find(std::string(resource));
    const std::string berth = BerthResource(std::string(resource));
    if (found == amounts.end() || berth.empty()) {
      return document_.Error(path, absl::StrCat("resourceFieldRef ", ref.resource(),
                                                ": the container does not set it"));
    }
    const auto amount = ParseKubernetesAmount(berth, found->second);
    const auto divisor = ParseKubernetesAmount(
        berth, ref.divisor().empty() || ref.divisor() == "0" ? "1" : ref.divisor());
    if (!amount.ok()) return;  // reported with the resources
    if (!divisor.ok() || *divisor < 1)
      return document_.Error(path,
                             absl::StrCat("divisor \"", ref.divisor(), "\" is not an amount"));
    Add(name, absl::StrCat((*amount + *divisor - 1) / *divisor), path, false);
  }

  const std::string& path_;
  const Container& container_;
  const PodSurroundings& surroundings_;
  ForeignJob& job_;
  ForeignDocument& document_;
  Variables& known_;
  std::vector<Variable> variables_;
};

}  // namespace

std::vector<std::string> ConvertEnvironment(const std::string& path, const Container& container,
                                            const PodSurroundings& surroundings,
                                            const std::string& to, ForeignJob* job,
                                            v1::TaskGroup* group, Variables* known) {
  EnvironmentConverter converter(path, container, surroundings, *job, *known);
  converter.Convert();
  return converter.Finish(to, group);
}

}  // namespace berth
