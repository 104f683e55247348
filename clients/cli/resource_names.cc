#include "clients/cli/resource_names.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace berth {
namespace {

struct Type {
  const char* noun;
  std::vector<const char*> words;
};

const std::vector<Type>& Types() {
  static const auto* types = new std::vector<Type>{
      {"job", {"job", "jobs", "j"}},
      {"queue", {"queue", "queues", "q"}},
      {"node", {"node", "nodes", "n"}},
      {"hypernode", {"hypernode", "hypernodes", "hn"}},
      {"priority-class",
       {"priority-class", "priority-classes", "priorityclass", "priorityclasses", "pc"}}};
  return *types;
}

// Removes "TYPE/". Returns the error, or "".
std::string StripType(const std::string& noun, std::string* name) {
  const size_t slash = name->find('/');
  if (slash == std::string::npos) return "";
  const std::string type = name->substr(0, slash);
  const std::string rest = name->substr(slash + 1);
  if (NounOf(type) != noun) {
    const std::string other = NounOf(type);
    const std::string is = other.empty() ? absl::StrCat("unknown type \"", type, "\"")
                                         : absl::StrCat("\"", *name, "\" is a ", other);
    return absl::StrCat(is, "; expected a ", noun, ": ", noun, "/", rest, " or ", rest);
  }
  *name = rest;
  return rest.empty() ? absl::StrCat("\"", type, "/\" names no ", noun) : "";
}

}  // namespace

std::string NounOf(absl::string_view word) {
  for (const Type& type : Types()) {
    for (const char* known : type.words) {
      if (absl::EqualsIgnoreCase(known, word)) return type.noun;
    }
  }
  return "";
}

CLI::Validator NameOf(const std::string& noun) {
  const std::string type = NounOf(noun).empty() ? "hypernode" : noun;
  return CLI::Validator([type](std::string& name) { return StripType(type, &name); }, "");
}

CLI::Validator JobOrTaskName() {
  const auto take_off = [](std::string& name) -> std::string {
    const size_t slashes = static_cast<size_t>(std::count(name.begin(), name.end(), '/'));
    if (slashes != 2) return slashes == 0 ? "" : StripType("job", &name);
    const size_t last = name.rfind('/');
    std::string job = name.substr(0, last);
    const std::string wrong = StripType("job", &job);
    if (wrong.empty()) name = job + name.substr(last);
    return wrong;
  };
  return CLI::Validator(take_off, "");
}

CLI::Validator TaskName() {
  const auto take_off = [](std::string& name) -> std::string {
    const size_t slash = name.rfind('/');
    if (slash != std::string::npos) name = name.substr(slash + 1);
    return "";
  };
  return CLI::Validator(take_off, "");
}

void SplitTask(std::string* job, std::string* task) {
  const size_t slash = job->find('/');
  if (slash == std::string::npos) return;
  if (task->empty()) *task = job->substr(slash + 1);
  job->resize(slash);
}

std::string NameOfTask(const v1::Task& task) {
  return absl::StrCat(task.group(), "-", task.index());
}

}  // namespace berth
