// A Slurm cluster's files as queues, labels, classes and roles.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/manifest.h"
#include "clients/cli/migrate/association_reader.h"
#include "clients/cli/migrate/migrated_cluster.h"
#include "clients/cli/migrate/slurm_config_reader.h"
#include "clients/cli/migration_files.h"
#include "clients/slurm/slurm_config.h"
#include "support/text_file.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

SourceText SiteFile(const std::string& name) {
  auto text = ReadTextFile(absl::StrCat(BERTH_SLURM_SITE, "/", name));
  REQUIRE(text.ok());
  return {name, *std::move(text)};
}

struct Site {
  SlurmSite site;

  std::string Config(const std::string& text) {
    return std::string(ReadSlurmConfigFiles({{"c", text}}, &site).message());
  }
  std::string Associations(const std::string& text) {
    return std::string(ReadAssociations({"a", text}, &site).message());
  }
  MigratedCluster Migrated() const {
    auto cluster = MigrateSite(site);
    REQUIRE(cluster.status() == absl::OkStatus());
    return *std::move(cluster);
  }
  std::string Error() const { return std::string(MigrateSite(site).status().message()); }
};

// "NAME < PARENT, weight N, cpu MILLIS, ..."
std::string Text(const v1::Queue& queue) {
  const v1::QueueSpec& spec = queue.spec();
  std::string text = queue.name();
  const auto add = [&](const char* name, auto value) {
    if (value != 0) absl::StrAppend(&text, ", ", name, " ", value);
  };
  if (!spec.parent().empty()) absl::StrAppend(&text, " < ", spec.parent());
  if (spec.has_weight()) absl::StrAppend(&text, ", weight ", spec.weight());
  add("cpu", spec.limit().cpu_millis() / 1000);
  add("GiB", spec.limit().memory_bytes() >> 30);
  for (const auto& [name, count] : spec.limit().counts()) add(name.c_str(), count);
  add("running", spec.max_running_jobs());
  add("jobs", spec.max_jobs());
  add("priority", spec.priority());
  add("default GiB", spec.defaults().memory_bytes() >> 30);
  if (spec.user_fairness() == v1::QueueSpec::DRF) text += ", fair";
  return text;
}
std::vector<std::string> QueueTexts(const MigratedCluster& cluster) {
  std::vector<std::string> texts;
  for (const v1::Queue& queue : cluster.queues) texts.push_back(Text(queue));
  return texts;
}
std::vector<std::string> GrantTexts(const MigratedCluster& cluster) {
  std::vector<std::string> texts;
  for (const MigratedGrant& grant : cluster.grants)
    texts.push_back(absl::StrCat(grant.user, " ", grant.role, " ", grant.queue));
  return texts;
}

Site WholeSite(const std::string& associations) {
  Site site;
  REQUIRE(ReadSlurmConfigFiles({SiteFile("slurm.conf")}, &site.site) == absl::OkStatus());
  REQUIRE(ReadAssociations(SiteFile(associations), &site.site) == absl::OkStatus());
  REQUIRE(ReadQosTable(SiteFile("qos.txt"), &site.site) == absl::OkStatus());
  return site;
}

TEST_CASE("migrate: accounts become queues, with shares and limits") {
  const MigratedCluster cluster = WholeSite("associations.dump").Migrated();
  CHECK(QueueTexts(cluster) ==
        std::vector<std::string>{"physics, weight 60, cpu 200, gpu 12, jobs 500, default GiB 8",
                                 "physics-users < physics, weight 10, fair",
                                 "astro < physics, weight 30, fair", "hep < physics, fair",
                                 "ml-lab, weight 40, GiB 2048, running 20, default GiB 8, fair"});
  CHECK(GrantTexts(cluster) ==
        std::vector<std::string>{"ada submitter astro", "ada queue-admin physics",
                                 "ada submitter physics-users", "bob submitter astro",
                                 "bob submitter hep", "cleo submitter ml-lab",
                                 "dan@uni submitter ml-lab", "ops1 operator "});
  CHECK(cluster.config.default_accounts().at("ada") == "physics");
  CHECK(cluster.config.default_accounts().at("bob") == "astro");
  CHECK_FALSE(cluster.config.default_accounts().contains("ops1"));
}

TEST_CASE("migrate: a table of sacctmgr says the same as a dump") {
  const MigratedCluster cluster = WholeSite("associations.txt").Migrated();
  CHECK(QueueTexts(cluster) ==
        std::vector<std::string>{"physics, weight 60, cpu 200, gpu 12, jobs 500, default GiB 8",
                                 "physics-users < physics, weight 10, fair",
                                 "astro < physics, weight 30, fair",
                                 "ml-lab, weight 40, GiB 2048, running 20, default GiB 8, fair"});
  CHECK(cluster.config.default_accounts().at("bob") == "astro");
  const std::string lines = absl::StrJoin(LinesOf(cluster.left_out), "\n");
  CHECK_THAT(lines, Contains("associations.txt:7: Partition of user bob=gpu"));
  CHECK_THAT(lines, Contains("associations.txt:6: QOS of account astro=high,normal"));
  CHECK_THAT(lines, !Contains("account other"));  // of another cluster
}

TEST_CASE("migrate: partitions are nodes with limits of time, and features are labels") {
  const MigratedCluster cluster = WholeSite("associations.dump").Migrated();
  const config::v1::SlurmConfig& config = cluster.config;
  CHECK(config.cluster_name() == "blue");
  REQUIRE(config.partitions_size() == 4);
  CHECK(config.partitions(0).default_());
  CHECK(config.partitions(0).node_labels().empty());
  CHECK(config.partitions(0).max_time().seconds() == 7 * 86400);
  CHECK(config.partitions(1).max_time().seconds() == 2 * 86400);
  CHECK(config.partitions(1).default_time().seconds() == 3600);
  CHECK(config.partitions(2).node_labels().at("partition.slurm/gpu") == "true");
  CHECK(config.partitions(3).max_time().seconds() == 1800);
  CHECK(config.features().at("a100") == "feature.slurm/a100=true");
  std::map<std::string, std::string> labels;
  for (const MigratedLabels& each : cluster.labels) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : each.labels) keys.push_back(key);
    labels[absl::StrJoin(each.nodes, " ")] = absl::StrJoin(keys, " ");
  }
  CHECK(labels.at("gpu03 gpu04") == "feature.slurm/h100 feature.slurm/ib partition.slurm/gpu");
  CHECK(labels.at("gpu02") == "feature.slurm/a100 feature.slurm/ib partition.slurm/gpu");
  CHECK(labels.at("gpu01") ==
        "feature.slurm/a100 feature.slurm/ib partition.slurm/debug partition.slurm/gpu");
  CHECK(labels.at("cpu02 cpu03 cpu04") ==
        "feature.slurm/ib feature.slurm/rome partition.slurm/cpu");
}

TEST_CASE("migrate: a QOS is a priority class, and may be evicted by others") {
  const MigratedCluster cluster = WholeSite("associations.dump").Migrated();
  std::vector<std::string> qos;
  for (const auto& each : cluster.config.qos()) {
    qos.push_back(absl::StrCat(each.name(), " ", each.priority_class(), " ",
                               each.has_preemptible() ? "preemptible" : ""));
  }
  CHECK(qos == std::vector<std::string>{"normal  preemptible", "high high preemptible",
                                        "scavenge  preemptible", "top top "});
  REQUIRE(cluster.priority_classes.size() == 2);
  CHECK(cluster.priority_classes[0].value() == 1000);
  CHECK(cluster.priority_classes[1].value() == 1'000'000);
}

TEST_CASE("migrate: what has no counterpart is listed with its line") {
  const MigratedCluster cluster = WholeSite("associations.dump").Migrated();
  const std::vector<std::string> lines = LinesOf(cluster.left_out);
  const std::string text = absl::StrJoin(lines, "\n");
  for (const char* line :
       {"slurm.conf:3: SlurmctldHost=head1(10.0.0.1) (and 1 more): name berthd in server",
        "slurm.conf:14: Prolog=/etc/slurm/prolog.d/*: hooks.prolog in agent.yaml",
        "slurm.conf:19: DefMemPerCPU=2048: queues have defaults.memory for each task, not for",
        "slurm.conf:24: SchedulerParameters=bf_window=2880,bf_continue,default_queue_depth=500: ",
        "slurm.conf:30: PriorityWeightFairshare=100000",
        "slurm.conf:39: Licenses=matlab:10: there",
        "slurm.conf:43: Weight=1: placement is by strategy",
        "slurm.conf:45: State=DRAIN: drain",
        "slurm.conf:45: Reason=new: berth node drain --reason",
        "slurm.conf:53: AllowQos=normal,high: who may submit",
        "slurm.conf:54: MaxNodes=1: a job",
        "slurm.conf:53: PriorityTier=10 (and 1 more): accounts are the queues",
        "slurm.conf:54: DefMemPerNode=4096: accounts are the queues",
        "associations.dump:11: GrpTRES of account physics=gres/gpu:a100=8 (and 1 more): this "
        "resource is not",
        "associations.dump:11: Description of account physics=Physics: all groups (and 3 more): "
        "queues have",
        "associations.dump:12: GrpTRESMins of account ML_Lab=cpu=1000000: queues limit what is",
        "associations.dump:15: MaxJobs of user dan@uni=4 (and 1 more): queues limit all",
        "associations.dump:15: Fairshare of user dan@uni=2",
        "hep=parent: a share of the parent",
        "associations.dump:24: User of user eve; rm -rf=eve; rm -rf: users here are of letters",
        "qos.txt:3: MaxTRESPU of QOS high=cpu=64: a QOS has no limits; give it a queue",
        "qos.txt:4: GraceTime of QOS scavenge=00:01:00: jobs have killGrace",
        "qos.txt:4: UsageFactor of QOS scavenge=0.000000: shares count",
        "qos.txt:5: Priority of QOS top=4000000: priorities are at most 1000000"}) {
    CHECK_THAT(text, Contains(line));
  }
  CHECK_THAT(text, !Contains("RealMemory"));  // agents find it
  CHECK_THAT(text, !Contains("ClusterName"));
}

TEST_CASE("migrate: without accounts, each partition is a queue") {
  Site site;
  REQUIRE(site.Config("NodeName=n[1-2] CPUs=4\nPartitionName=Big_Mem Nodes=n1 PriorityTier=5\n"
                      "PartitionName=all Nodes=ALL DefMemPerNode=2048 Default=YES\n") == "");
  const MigratedCluster cluster = site.Migrated();
  CHECK(QueueTexts(cluster) ==
        std::vector<std::string>{"big-mem, priority 4", "all, default GiB 2"});
  CHECK(cluster.config.partitions(0).queue() == "big-mem");
  CHECK(cluster.config.partitions(1).queue().empty());
  CHECK(cluster.config.accounts().empty());
}

TEST_CASE("migrate: the files are what berth and the Slurm commands read") {
  const MigratedCluster cluster = WholeSite("associations.dump").Migrated();
  std::map<std::string, std::string> files;
  for (const MigrationFile& file : FilesOf(cluster, {})) files[file.name] = file.text;
  std::vector<std::string> warnings;
  const auto manifests = ReadManifests(files.at("queues.yaml"), "queues.yaml", {}, &warnings);
  REQUIRE(manifests.status() == absl::OkStatus());
  CHECK(manifests->size() == cluster.queues.size() + cluster.priority_classes.size());
  config::v1::SlurmConfig config;
  REQUIRE(ReadYaml(files.at("slurm.yaml"), "slurm.yaml", &config) == absl::OkStatus());
  CHECK(config.SerializeAsString().size() == cluster.config.SerializeAsString().size());
  CHECK(CheckSlurmConfig(config) == absl::OkStatus());
  CHECK_THAT(files.at("labels.yaml"),
             Contains("# cpu[02-04]\nlabels:\n  feature.slurm/ib: \"true"));
  CHECK_THAT(files.at("access.sh"),
             Contains("berth access grant queue-admin --user ada --queue physics || status=1\n"));
  CHECK_THAT(files.at("access.sh"),
             Contains("berth access grant operator --user ops1 || status=1\n"));
  CHECK_THAT(files.at("access.sh"), !Contains("eve;"));
}

TEST_CASE("migrate: errors name file and line") {
  CHECK_THAT(Site().Config("ClusterName\n"), Contains("c:1:1: expected KEY=VALUE"));
  CHECK_THAT(Site().Config("Include nodes.conf\n"), Contains("c:1:1: Include is not supported"));
  CHECK_THAT(Site().Config("NodeName=n[1-2]\nNodeName=n2\n"),
             Contains("c:2:1: node n2 is defined"));
  CHECK_THAT(Site().Config("PartitionName=p Nodes=x\n"),
             Contains("c:1:17: there is no NodeName=x"));
  CHECK_THAT(Site().Config("PartitionName=p MaxTime=soon\n"), Contains("c:1:17: expected a time"));
  CHECK_THAT(Site().Config("NodeName=n[1-900000]\n"), Contains("c:1:1"));
  CHECK_THAT(Site().Config("NodeName=n[1-150000]\nPartitionName=DEFAULT Nodes=ALL\n"
                           "PartitionName=a\nPartitionName=b\nPartitionName=c\nPartitionName=d\n"
                           "PartitionName=e\nPartitionName=f\nPartitionName=g\nPartitionName=h\n"),
             Contains("c:2:23: partitions with more than 1000000 nodes together"));
  std::string features;
  for (int i = 0; i < 11; ++i) absl::StrAppend(&features, i == 0 ? "" : ",", "f", i);
  CHECK_THAT(Site().Config("NodeName=n[1-100000] Feature=" + features),
             Contains("more than 1000000 features of nodes"));
  CHECK_THAT(Site().Associations("hello\n"), Contains("a:1:1: expected KIND - 'NAME'"));
  CHECK_THAT(Site().Associations("Account - 'a':Fairshare\n"), Contains("a:1:1: expected OPTION="));
  CHECK_THAT(Site().Associations("Cluster|User|\nx|y|\n"), Contains("there is no column account"));
  CHECK_THAT(Site().Associations("Account|User|\nx|\n"), Contains("a:2:1: has 2 columns"));
  CHECK_THAT(Site().Associations("# nothing\n"), Contains("there is no account in it"));
  CHECK_THAT(Site().Associations("Cluster|Account|User\na|x|\nb|y|\n"),
             Contains("several clusters"));

  Site twice;
  REQUIRE(twice.Associations("Account - 'a'\nAccount - 'a'\n") == "");
  CHECK(twice.Error() == "a:2:1: account a is defined twice");
  Site orphan;
  REQUIRE(orphan.Associations("Parent - 'b'\nAccount - 'a'\n") == "");
  CHECK_THAT(orphan.Error(), Contains("account a has the parent b, which is not there"));
  Site ring;
  REQUIRE(ring.Associations("Parent - 'b'\nAccount - 'a'\nParent - 'a'\nAccount - 'b'\n") == "");
  CHECK_THAT(ring.Error(), Contains("their own parents"));
  Site deep;
  std::string text;
  for (int i = 0; i < 17; ++i)
    absl::StrAppend(&text, "Parent - '", i == 0 ? "root" : absl::StrCat("a", i - 1),
                    "'\nAccount - 'a", i, "'\n");
  REQUIRE(deep.Associations(text) == "");
  CHECK_THAT(deep.Error(), Contains("account a16 is deeper than 16"));
}

TEST_CASE("migrate: names that become the same label stay apart") {
  Site site;
  REQUIRE(site.Associations("Account - 'ML'\nAccount - 'ml'\nAccount - 'ml '\n") == "");
  std::set<std::string> names;
  for (const v1::Queue& queue : site.Migrated().queues) names.insert(queue.name());
  CHECK(names.size() == 3);
  CHECK(names.contains("ml"));
}

}  // namespace
}  // namespace berth
