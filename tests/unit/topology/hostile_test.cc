// Hostile texts: truncated anywhere, with bytes changed, or built to use much memory or time.
#include <random>

#include "tests/unit/topology/world.h"

namespace berth {
namespace {

struct Sample {
  const char* format;
  const char* text;
};

constexpr Sample kSamples[] = {
    {"slurm-conf",
     "SwitchName=s0 Nodes=dev[0-5],a[1-2]b[0-1] LinkSpeed=400\nSwitchName=s1 Nodes=\"x\" # y\n"
     "SwitchName=s3 \\\n Switches=s[0-1]\n"},
    {"slurm-conf", "BlockName=b1 Nodes=n[01-04]\nBlockName=b2 Nodes=n[05-08]\nBlockSizes=4,8\n"},
    {"slurm-yaml",
     "- topology: t\n  tree: {switches: [{switch: r, children: \"s[1-2]\"}, {switch: s1, nodes: "
     "\"n[01-02]\"}, {switch: s2, nodes: n3}]}\n"},
    {"topograph",
     "switches: {core: {switches: [a, b]}}\nblocks:\n- {switch: a, nodes: [\"n[1-3]\"], "
     "annotations: "
     "{accelerator.x/domain: d, accelerator.x/sub-domain: e}}\n- {switch: b, nodes: [n9]}\n"},
    {"topograph", "[{\"Name\": \"n1\", \"DomainUUID\": \"3f\"}]"},
    {"ibnetdiscover",
     "Switch\t65 \"S-01\"\t\t# \"leaf\" enhanced port 0 lid 73 lmc 0\n"
     "[1]\t\"H-11\"[1](11) \t\t# \"n1 HCA-1\" lid 647 4xNDR\n"
     "[2][ext 4]\t\"S-09\"[32]\t\t# \"spine\" lid 236 4xNDR\n\n"
     "Switch\t65 \"S-02\"\t\t# \"leaf\"\n[1]\t\"H-12\"[1](12) # \"n2\" lid 1 4xHDR\n[2] "
     "\"S-09\"[1]\n\n"
     "Ca\t1 \"H-11\"\t\t# \"n1 HCA-1\"\n[1](11) \t\"S-01\"[1]\t\t# lid 93 \"leaf\" lid 119 "
     "4xNDR\n"},
    {"ufm",
     "[{\"description\":\"Computer IB Port\",\"system_name\":\"n1\",\"peer_node_name\":\"l1\"},\n"
     " {\"description\":\"Switch IB Port\",\"system_name\":\"l1\",\"peer_node_name\":\"s1\"}]"},
};

// The result is an error with a message, or HyperNodes that equal themselves in a comparison.
void Survives(const Sample& sample, const std::string& text) {
  const Import import = RunImport(sample.format, text);
  if (!import.error.empty()) {
    CHECK(import.made.empty());
    return;
  }
  REQUIRE(!import.made.empty());
  const auto difference = Compare(import.made, absl::StrCat("import/", sample.format), import.made);
  REQUIRE(difference.ok());
  REQUIRE(difference->unchanged() == static_cast<int64_t>(import.made.size()));
}

TEST_CASE("the samples are valid") {
  for (const Sample& sample : kSamples) {
    INFO(sample.text);
    CHECK(RunImport(sample.format, sample.text).error == "");
    CheckRepeats(sample.format, TextInput(sample.text));
  }
}

TEST_CASE("texts truncated at any byte") {
  for (const Sample& sample : kSamples) {
    const std::string text = sample.text;
    for (size_t size = 0; size < text.size(); ++size) Survives(sample, text.substr(0, size));
  }
}

TEST_CASE("texts with bytes changed, moved and repeated") {
  std::mt19937 dice(7);
  const std::string bytes = "[]{}\"#:=,-\\\n\t 09azSH&*!\xff\x01";
  for (int round = 0; round < 1500; ++round) {
    const Sample& sample = kSamples[dice() % std::size(kSamples)];
    std::string text = sample.text;
    for (unsigned edits = 1 + dice() % 4; edits > 0 && !text.empty(); --edits) {
      const size_t at = dice() % text.size();
      switch (dice() % 3) {
        case 0:
          text[at] = bytes[dice() % bytes.size()];
          break;
        case 1:
          text.erase(at, 1 + dice() % 9);
          break;
        default:
          text.insert(at, text.substr(dice() % text.size(), 1 + dice() % 30));
      }
    }
    Survives(sample, text);
  }
}

TEST_CASE("a few bytes cannot expand to gigabytes") {
  const auto error = [](const char* format, const std::string& text) {
    return Outcome(RunImport(format, text));
  };
  CHECK(error("slurm-conf", "SwitchName=a Nodes=n[0-199999]x[0-9]\n").find("too many names") !=
        std::string::npos);
  std::string lines;
  for (int i = 0; i < 10; ++i) absl::StrAppend(&lines, "SwitchName=s", i, " Nodes=n[0-199999]\n");
  CHECK(error("slurm-conf", lines).find("more than the 500000 names") != std::string::npos);
  CHECK(error("topograph", "blocks: [{switch: a, nodes: [\"n[0-99999]\"]}]") ==
        "\"a\" (f:1:10) has 100000 members, more than the 10000 allowed");
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "[";
  CHECK(error("ufm", deep).find("nested more than 32 levels") != std::string::npos);
  std::string errors;
  for (int i = 0; i < 1000; ++i) errors += "x\n";
  CHECK(error("ibnetdiscover", errors).find("f: and 980 more errors") != std::string::npos);
}

TEST_CASE("a long chain of switches ends at the bound, and a long cycle is abbreviated") {
  std::string chain = "SwitchName=s0 Nodes=n1\n", cycle = "SwitchName=s0 Nodes=n1 Switches=s9999\n";
  for (int i = 1; i < 10'000; ++i) {
    absl::StrAppend(&chain, "SwitchName=s", i, " Switches=s", i - 1, "\n");
    absl::StrAppend(&cycle, "SwitchName=s", i, " Switches=s", i - 1, "\n");
  }
  CHECK(Outcome(RunImport("slurm-conf", chain)).find("has more than 32 tiers") !=
        std::string::npos);
  const std::string text = Outcome(RunImport("slurm-conf", cycle));
  CHECK(text.find("a cycle: \"s0\" (f:1:1) is below \"s1\"") == 0);
  CHECK(text.size() < 1000);
}

TEST_CASE("the largest allowed topology is imported") {
  std::string text;
  for (int leaf = 0; leaf < 19'000; ++leaf) {
    absl::StrAppend(&text, "SwitchName=l", leaf, " Nodes=n", leaf, "-[1-5]\n");
  }
  for (int spine = 0; spine < 19; ++spine) {
    absl::StrAppend(&text, "SwitchName=s", spine, " Switches=l[", spine * 1000, "-",
                    spine * 1000 + 999, "]\n");
  }
  CHECK(RunImport("slurm-conf", text).made.size() == 19'019);
}

}  // namespace
}  // namespace berth
