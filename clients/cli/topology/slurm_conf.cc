#include "clients/cli/topology/slurm_conf.h"

#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clients/cli/topology/node_names.h"
#include "clients/cli/topology/slurm_blocks.h"
#include "clients/cli/topology/slurm_lines.h"
#include "support/nearest.h"

namespace berth {
namespace {

constexpr int64_t kMaxLinkSpeed = 1'000'000;

class SlurmConfReader {
 public:
  explicit SlurmConfReader(Imported* imported) : imported_(*imported) {}

  absl::Status ReadFile(const SourceText& text) {
    YamlErrors errors(text.name);
    file_ = text.name;
    errors_ = &errors;
    ReadSlurmLines(text.text, &errors, [&](const SlurmLine& line) { ReadLine(line); });
    return errors.status();
  }

  absl::Status Finish() {
    const absl::Status status = AddBlocks(std::move(blocks_), sizes_, &imported_);
    if (const std::string warning = lists_.Warning(); !warning.empty())
      imported_.warnings.push_back(warning);
    if (status.ok() || sizes_place_.position.line == 0) return status;
    return absl::InvalidArgumentError(absl::StrCat(sizes_place_.text(), ": ", status.message()));
  }

 private:
  void ReadLine(const SlurmLine& line) {
    const SlurmSetting& first = line.front();
    if (first.key == "switchname") {
      ReadGroup(line, {"Switches", "Nodes", "LinkSpeed"}, &imported_.groups);
    } else if (first.key == "blockname") {
      ReadGroup(line, {"Nodes"}, &blocks_);
    } else if (first.key == "blocksizes") {
      ReadSizes(line);
    } else if (first.key == "ringname") {
      errors_->Add(first.position, "rings are not supported: only switches and blocks are");
    } else {
      errors_->Add(first.position, UnknownWord("unknown key", first.word,
                                               {"SwitchName", "BlockName", "BlockSizes"}));
    }
  }

  void ReadGroup(const SlurmLine& line, const std::vector<std::string>& known,
                 std::vector<NodeGroup>* groups) {
    NodeGroup group;
    group.id = line.front().value;
    group.place = {file_, line.front().position};
    if (group.id.empty() || group.id.find_first_of("[],") != std::string::npos)
      errors_->Add(group.place.position, absl::StrCat(line.front().word, " must be one name"));
    std::map<std::string, int> seen;
    for (size_t i = 1; i < line.size(); ++i) {
      const SlurmSetting& setting = line[i];
      const auto is_it = [&](const std::string& key) {
        return absl::EqualsIgnoreCase(key, setting.key);
      };
      if (std::none_of(known.begin(), known.end(), is_it)) {
        errors_->Add(setting.position, UnknownWord("unknown key", setting.word, known));
      } else if (++seen[setting.key] > 1) {
        errors_->Add(setting.position, absl::StrCat("duplicate ", setting.word));
      } else {
        ReadSetting(setting, &group);
      }
    }
    groups->push_back(std::move(group));
    const bool mixed = !imported_.groups.empty() && !blocks_.empty();
    if (!std::exchange(reported_mixed_, mixed || reported_mixed_) && mixed) {
      errors_->Add(line.front().position,
                   "switches and blocks in one import: a Slurm cluster has only one of them");
    }
  }

  void ReadSetting(const SlurmSetting& setting, NodeGroup* group) {
    if (setting.key == "linkspeed") {
      int64_t speed = 0;
      if (!absl::SimpleAtoi(setting.value, &speed) || speed < 0 || speed > kMaxLinkSpeed)
        errors_->Add(setting.position, absl::StrCat("LinkSpeed must be 0 to ", kMaxLinkSpeed));
      group->bandwidth_gbps = speed;
      return;
    }
    const bool nodes = setting.key == "nodes";
    auto names = nodes ? lists_.ExpandNodes(setting.value) : lists_.Expand(setting.value);
    if (!names.ok()) {
      errors_->Add(setting.position, names.status().message());
      return;
    }
    (nodes ? group->nodes : group->children) = *std::move(names);
  }

  void ReadSizes(const SlurmLine& line) {
    const SlurmSetting& setting = line.front();
    if (line.size() > 1)
      errors_->Add(line[1].position, "nothing may follow BlockSizes on its line");
    if (!sizes_.empty()) errors_->Add(setting.position, "duplicate BlockSizes");
    sizes_place_ = {file_, setting.position};
    for (const absl::string_view text : absl::StrSplit(setting.value, ',')) {
      int64_t size = 0;
      if (!absl::SimpleAtoi(text, &size)) {
        errors_->Add(setting.position, absl::StrCat("\"", text, "\" is not a block size"));
        return;
      }
      sizes_.push_back(size);
    }
  }

  Imported& imported_;
  std::vector<NodeGroup> blocks_;
  std::vector<int64_t> sizes_;
  SourcePlace sizes_place_;
  NameLists lists_;
  bool reported_mixed_ = false;
  std::string file_;
  YamlErrors* errors_ = nullptr;  // of the file that is read now
};

}  // namespace

absl::StatusOr<Imported> ReadSlurmConf(const ImportInput& input) {
  Imported imported;
  SlurmConfReader reader(&imported);
  std::vector<std::string> errors;
  for (const SourceText& text : input.texts) {
    const absl::Status status = reader.ReadFile(text);
    if (!status.ok()) errors.emplace_back(status.message());
  }
  if (!errors.empty()) return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
  const absl::Status status = reader.Finish();
  if (!status.ok()) return status;
  return imported;
}

}  // namespace berth
