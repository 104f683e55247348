#include "clients/cli/migrate/account_queues.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/cli/migrate/slurm_parameters.h"
#include "clients/cli/topology/names.h"
#include "clients/slurm/values.h"

namespace berth {
namespace {

constexpr int32_t kMostWeight = 65535;
constexpr char kUsersLeaf[] = "-users";
constexpr char kRootAccount[] = "root";
constexpr char kRootUser[] = "root";  // in each cluster of Slurm

// What users of a certificate may be called; also safe in a shell.
bool IsUserName(absl::string_view text) {
  const auto plain = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("._@-", c);
  };
  return !text.empty() && text[0] != '-' && std::all_of(text.begin(), text.end(), plain);
}

struct Account {
  const SlurmAssociation* text = nullptr;
  std::vector<std::string> children;
  std::vector<const SlurmAssociation*> users;
  std::string queue;  // name
  std::string leaf;   // of its users
};

class AccountQueues {
 public:
  AccountQueues(const SlurmSite& site, MigratedCluster* cluster)
      : site_(site), cluster_(*cluster) {}

  absl::Status Add() {
    for (const auto step : {&AccountQueues::Index, &AccountQueues::Link}) {
      const absl::Status status = (this->*step)();
      if (!status.ok()) return status;
    }
    size_t added = 0;
    for (const std::string& top : top_) {
      const absl::Status status = AddTree(top, "", 1, &added);
      if (!status.ok()) return status;
    }
    if (added != accounts_.size())
      return absl::InvalidArgumentError("accounts that are their own parents, over others");
    for (const SlurmAssociation& association : site_.associations) {
      const bool own = association.account == kRootAccount && association.user == kRootUser;
      if (!association.user.empty() && !own) AddUser(association);
    }
    AddGrants();
    return absl::OkStatus();
  }

 private:
  void LeaveOut(const SlurmAssociation& association, const SlurmOptionText& option,
                absl::string_view instead) {
    const std::string of = association.user.empty()
                               ? absl::StrCat(" of account ", association.account)
                               : absl::StrCat(" of user ", association.user);
    cluster_.left_out.push_back(
        {association.place, absl::StrCat(option.word, of), option.value, std::string(instead)});
  }

  static absl::Status Error(const SlurmAssociation& association, absl::string_view text) {
    return absl::InvalidArgumentError(
        absl::StrCat(association.place.text(), ": account ", association.account, text));
  }

  absl::Status Index() {
    for (const SlurmAssociation& association : site_.associations) {
      if (!association.user.empty()) continue;
      if (association.account == kRootAccount) {
        LeaveOutRoot(association);
        continue;
      }
      Account& account = accounts_[association.account];
      if (account.text != nullptr) return Error(association, " is defined twice");
      account.text = &association;
      order_.push_back(association.account);
    }
    return absl::OkStatus();
  }

  // The root has neither limits nor siblings.
  void LeaveOutRoot(const SlurmAssociation& association) {
    for (const SlurmOptionText& option : association.options) {
      const bool share = option.key == "fairshare" || option.key == "share";
      if (!share && !IsUsual(option))
        LeaveOut(association, option, "the root queue is the whole cluster, without limits");
    }
  }

  absl::Status Link() {
    for (const std::string& name : order_) {
      const SlurmAssociation& text = *accounts_.at(name).text;
      if (text.parent.empty()) {
        top_.push_back(name);
        continue;
      }
      const auto parent = accounts_.find(text.parent);
      if (parent == accounts_.end())
        return Error(text, absl::StrCat(" has the parent ", text.parent, ", which is not there"));
      parent->second.children.push_back(name);
    }
    for (const SlurmAssociation& association : site_.associations) {
      if (association.user.empty() || association.account == kRootAccount) continue;
      const auto account = accounts_.find(association.account);
      if (account == accounts_.end())
        return Error(association, absl::StrCat(" of user ", association.user, " is not there"));
      account->second.users.push_back(&association);
    }
    return absl::OkStatus();
  }

  absl::Status AddTree(const std::string& name, const std::string& parent, int depth,
                       size_t* added) {
    Account& account = accounts_.at(name);
    if (depth > kMostAccountDepth) {
      return Error(*account.text, absl::StrCat(" is deeper than ", kMostAccountDepth,
                                               ", the greatest depth of queues"));
    }
    ++*added;
    account.queue = account.leaf = names_.Take(name);
    v1::Queue& queue = cluster_.queues.emplace_back();
    queue.set_name(account.queue);
    queue.mutable_spec()->set_parent(parent);
    if (parent.empty() && site_.memory_per_node > 0)
      queue.mutable_spec()->mutable_defaults()->set_memory_bytes(site_.memory_per_node);
    for (const SlurmOptionText& option : account.text->options)
      ReadOption(*account.text, option, queue.mutable_spec());
    const bool leaf = account.children.empty();
    if (leaf) queue.mutable_spec()->set_user_fairness(v1::QueueSpec::DRF);
    if (!leaf && !account.users.empty()) AddUsersLeaf(&account);
    if (leaf || !account.users.empty()) {
      config::v1::SlurmAccount* known = cluster_.config.add_accounts();
      known->set_name(name);
      if (account.leaf != name) known->set_queue(account.leaf);
    }
    const std::string queue_name = account.queue;
    for (const std::string& child : account.children) {
      const absl::Status status = AddTree(child, queue_name, depth + 1, added);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Only leaves take jobs: the users of an account with sub-accounts are beside these.
  void AddUsersLeaf(Account* account) {
    int64_t shares = 0;
    for (const SlurmAssociation* user : account->users) shares += ShareOf(*user);
    account->leaf = names_.Take(account->text->account + kUsersLeaf);
    v1::Queue& queue = cluster_.queues.emplace_back();
    queue.set_name(account->leaf);
    queue.mutable_spec()->set_parent(account->queue);
    queue.mutable_spec()->set_weight(static_cast<int32_t>(std::min<int64_t>(shares, kMostWeight)));
    queue.mutable_spec()->set_user_fairness(v1::QueueSpec::DRF);
  }

  static int32_t ShareOf(const SlurmAssociation& association) {
    int32_t share = 1;
    for (const SlurmOptionText& option : association.options) {
      if (option.key == "fairshare" || option.key == "share")
        if (!absl::SimpleAtoi(option.value, &share) || share < 0) share = 1;
    }
    return std::min(share, kMostWeight);
  }

  void ReadOption(const SlurmAssociation& text, const SlurmOptionText& option,
                  v1::QueueSpec* spec) {
    int64_t number = -1;
    const bool is_number = absl::SimpleAtoi(option.value, &number);
    if (IsUsual(option)) return;
    if (option.key == "fairshare" || option.key == "share") {
      if (is_number && number >= 0 && number <= kMostWeight)
        return spec->set_weight(static_cast<int32_t>(number));
      if (is_number && number > kMostWeight) {
        spec->set_weight(kMostWeight);
        return LeaveOut(text, option, absl::StrCat("weights are at most ", kMostWeight));
      }
    } else if (option.key == "grptres") {
      return ReadLimit(text, option, spec->mutable_limit());
    } else if (option.key == "grpjobs" && is_number && number > 0 && number <= INT32_MAX) {
      return spec->set_max_running_jobs(static_cast<int32_t>(number));
    } else if ((option.key == "grpsubmit" || option.key == "grpsubmitjobs") && is_number &&
               number > 0 && number <= INT32_MAX) {
      return spec->set_max_jobs(static_cast<int32_t>(number));
    }
    LeaveOut(text, option, InsteadOfLimit(option.key));
  }

  // "cpu=100,mem=400G,gres/gpu=8"
  void ReadLimit(const SlurmAssociation& text, const SlurmOptionText& option,
                 v1::ResourceList* limit) {
    for (const absl::string_view part : absl::StrSplit(option.value, ',', absl::SkipWhitespace())) {
      const std::pair<std::string, std::string> sides =
          absl::StrSplit(part, absl::MaxSplits('=', 1));
      absl::string_view name = sides.first;
      int64_t amount = -1;
      const bool is_number = absl::SimpleAtoi(sides.second, &amount) && amount >= 0;
      const auto memory = ParseSlurmMemory(sides.second);
      const bool device = absl::ConsumePrefix(&name, "gres/") && !absl::StrContains(name, ':');
      if (sides.second == "-1") continue;
      if (name == "cpu" && is_number && amount <= INT32_MAX) {
        limit->set_cpu_millis(amount * 1000);
      } else if (name == "mem" && memory.ok()) {
        limit->set_memory_bytes(*memory);
      } else if (device && is_number && amount <= INT32_MAX) {
        (*limit->mutable_counts())[std::string(name)] = static_cast<double>(amount);
      } else {
        LeaveOut(text, {option.key, option.word, std::string(part)}, InsteadOfLimit("grptres"));
      }
    }
  }

  // What sacctmgr prints of everything, and says nothing.
  static bool IsUsual(const SlurmOptionText& option) {
    return option.value == "-1" || (option.key == "qos" && option.value == "normal") ||
           option.key == "defaultaccount" || option.key == "defacct" ||
           (option.key == "adminlevel" && option.value == "None");
  }

  void AddUser(const SlurmAssociation& association) {
    const std::string& user = association.user;
    const bool named = IsUserName(user);
    if (!named) {
      LeaveOut(association, {"user", "User", user}, "users here are of letters, digits and ._@-");
      return;
    }
    std::string given;
    for (const SlurmOptionText& option : association.options) {
      if (option.key == "defaultaccount" || option.key == "defacct") given = option.value;
      ReadUserOption(association, option);
    }
    if (association.account == kRootAccount) return;
    const Account& account = accounts_.at(association.account);
    grants_.insert({user, account.leaf, "submitter"});
    auto& defaults = *cluster_.config.mutable_default_accounts();
    const bool known = accounts_.contains(given) && !accounts_.at(given).users.empty();
    if (known) defaults[user] = given;
    if (!defaults.contains(user)) defaults[user] = association.account;
  }

  void ReadUserOption(const SlurmAssociation& association, const SlurmOptionText& option) {
    const std::string& user = association.user;
    const bool share = option.key == "fairshare" || option.key == "share";
    if (IsUsual(option) || (share && option.value == "1")) return;
    if (option.key == "adminlevel" || option.key == "admin") {
      const bool admin = absl::StartsWithIgnoreCase(option.value, "admin");
      grants_.insert({user, "", admin ? "admin" : "operator"});
    } else if (option.key == "coordinator" || option.key == "coordinators") {
      for (const absl::string_view name :
           absl::StrSplit(option.value, ',', absl::SkipWhitespace())) {
        const auto account = accounts_.find(std::string(name));
        if (account != accounts_.end())
          grants_.insert({user, account->second.queue, "queue-admin"});
      }
    } else {
      LeaveOut(association, option,
               share ? "users of a queue share alike" : InsteadOfLimit(option.key));
    }
  }

  void AddGrants() {
    for (const auto& [user, queue, role] : grants_) cluster_.grants.push_back({role, user, queue});
  }

  const SlurmSite& site_;
  MigratedCluster& cluster_;
  std::map<std::string, Account> accounts_;
  std::vector<std::string> order_, top_;
  std::set<std::tuple<std::string, std::string, std::string>> grants_;  // user, queue, role
  MigratedNames names_;
};

}  // namespace

std::string MigratedNames::Take(const std::string& name) {
  constexpr size_t kRoom = 9;  // "-" and a hash
  const std::string plain = DnsLabelFrom(name);
  std::string label = plain;
  for (std::string hashed = name; !taken_.insert(label).second; hashed += "+")
    label = absl::StrCat(plain.substr(0, kMaxLabelBytes - kRoom), "-", ShortHash(hashed));
  return label;
}

absl::Status AddAccountQueues(const SlurmSite& site, MigratedCluster* cluster) {
  return AccountQueues(site, cluster).Add();
}

}  // namespace berth
