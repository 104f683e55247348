#include "server/access/table.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/access/access.h"
#include "server/access/rpcs.h"
#include "server/access/task_caller.h"

namespace berth {
namespace {

absl::string_view OverText(Over over) {
  switch (over) {
    case Over::kCluster:
      return "the cluster";
    case Over::kQueue:
      return "the queue; its parent for CreateQueue and DeleteQueue";
    case Over::kJob:
      return "the job's queue, or be its owner";
    case Over::kRows:
      return "each row of the answer, each entry of the request";
    case Over::kAnyone:
      return "no right: about the caller";
    case Over::kOwnNode:
      return "the node's own certificate";
    case Over::kServer:
      return "a token that only servers of the cluster know";
  }
  return "";
}

std::string MethodRow(Rpc rpc) {
  const RpcNeed need = NeedOf(rpc);
  const bool verb = need.over != Over::kAnyone && need.over != Over::kOwnNode &&
                    need.over != Over::kServer;
  return absl::StrCat("| ", NameOf(rpc), " | ", verb ? NameOf(need.verb) : "", " | ",
                      OverText(need.over), " | ", TasksMayCall(rpc) ? "its own job" : "", " |\n");
}

// With a column for each role.
std::string VerbRow(Verb verb) {
  std::vector<std::string> cells = {
      std::string(NameOf(verb)), IsOverCluster(verb) ? "cluster" : "queue",
      kOwnerVerbs.Has(verb) ? "yes" : "", kTaskVerbs.Has(verb) ? "yes" : ""};
  for (const BuiltInRole& role : BuiltInRoles()) cells.push_back(role.verbs.Has(verb) ? "yes" : "");
  return absl::StrCat("| ", absl::StrJoin(cells, " | "), " |\n");
}

}  // namespace

std::string AccessTable() {
  std::string text = "| method | verb | over | a task |\n|---|---|---|---|\n";
  for (size_t i = 0; i < kRpcs; ++i) absl::StrAppend(&text, MethodRow(static_cast<Rpc>(i)));
  std::vector<absl::string_view> names = {"verb", "over", "owner of the job", "task of the job"};
  for (const BuiltInRole& role : BuiltInRoles()) names.push_back(role.name);
  absl::StrAppend(&text, "\n| ", absl::StrJoin(names, " | "), " |\n|");
  for (size_t i = 0; i < names.size(); ++i) absl::StrAppend(&text, "---|");
  absl::StrAppend(&text, "\n");
  for (size_t i = 0; i < kVerbs; ++i) absl::StrAppend(&text, VerbRow(static_cast<Verb>(i)));
  return text;
}

}  // namespace berth
