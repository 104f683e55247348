// berth migrate slurm: the files of a Slurm cluster become manifests, configuration and roles.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "clients/cli/command.h"
#include "clients/cli/migrate/association_reader.h"
#include "clients/cli/migrate/migrated_cluster.h"
#include "clients/cli/migrate/slurm_config_reader.h"
#include "clients/cli/migration_files.h"
#include "clients/cli/topology/import.h"
#include "support/text_file.h"

namespace berth {
namespace {

// The format and the source of `berth topology import --from slurm-conf`, which goes on from here.
constexpr char kTopologyFormatName[] = "slurm-conf";
constexpr char kTopologySource[] = "import/slurm-conf";

struct SlurmFiles {
  std::vector<std::string> config;
  std::vector<std::string> topology;
  std::string associations;
  std::string qos;
  std::string directory;
};

absl::StatusOr<SourceText> ReadSlurmFile(const std::string& path) {
  auto text = ReadTextFile(path);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  return SourceText{path == "-" ? "stdin" : path, *std::move(text)};
}

absl::StatusOr<std::vector<SourceText>> ReadSlurmFiles(const std::vector<std::string>& paths) {
  std::vector<SourceText> texts;
  for (const std::string& path : paths) {
    auto text = ReadSlurmFile(path);
    if (!text.ok()) return text.status();
    texts.push_back(*std::move(text));
  }
  return texts;
}

absl::StatusOr<SlurmSite> ReadSite(const SlurmFiles& files) {
  SlurmSite site;
  const auto config = ReadSlurmFiles(files.config);
  if (!config.ok()) return config.status();
  if (absl::Status status = ReadSlurmConfigFiles(*config, &site); !status.ok()) return status;
  using Read = absl::Status (*)(const SourceText&, SlurmSite*);
  const std::pair<const std::string*, Read> tables[] = {{&files.associations, &ReadAssociations},
                                                        {&files.qos, &ReadQosTable}};
  for (const auto& [path, read] : tables) {
    if (path->empty()) continue;
    const auto text = ReadSlurmFile(*path);
    if (!text.ok()) return text.status();
    if (absl::Status status = read(*text, &site); !status.ok()) return status;
  }
  return site;
}

absl::StatusOr<std::vector<v1::HyperNode>> ReadHyperNodes(const SlurmFiles& files,
                                                          std::vector<std::string>* warnings) {
  if (files.topology.empty()) return std::vector<v1::HyperNode>();
  auto texts = ReadSlurmFiles(files.topology);
  if (!texts.ok()) return texts.status();
  const ImportInput input{.texts = *std::move(texts)};
  const auto imported = ReadTopology(*FindTopologyFormat(kTopologyFormatName), input, "");
  if (!imported.ok()) return imported.status();
  warnings->insert(warnings->end(), imported->warnings.begin(), imported->warnings.end());
  return MakeHyperNodes(*imported, {.source = kTopologySource, .prefix = ""}, {});
}

// Never over a file that is there: somebody may have changed it since the last migration.
absl::Status WriteNewFile(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  bool written = fd >= 0;
  for (size_t at = 0; written && at < text.size();) {
    const ssize_t size = write(fd, text.data() + at, text.size() - at);
    written = size > 0;
    at += written ? static_cast<size_t>(size) : 0;
  }
  if (fd >= 0 && close(fd) != 0) written = false;
  if (written) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
}

absl::Status WriteFiles(const std::vector<MigrationFile>& files, const std::string& directory) {
  if (mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot make ", directory, ": ", std::strerror(errno)));
  }
  for (const MigrationFile& file : files) {
    const std::string path = absl::StrCat(directory, "/", file.name);
    if (access(path.c_str(), F_OK) == 0)
      return absl::AlreadyExistsError(absl::StrCat(path, " is there: name another directory"));
  }
  for (const MigrationFile& file : files) {
    const absl::Status status = WriteNewFile(absl::StrCat(directory, "/", file.name), file.text);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

ExitCode MigrateSlurm(Session& session, const SlurmFiles& files) {
  auto site = ReadSite(files);
  if (!site.ok()) return session.Finish(site.status());
  const auto hyper_nodes = ReadHyperNodes(files, &site->warnings);
  if (!hyper_nodes.ok()) return session.Finish(hyper_nodes.status());
  const auto cluster = MigrateSite(*site);
  if (!cluster.ok()) return session.Finish(cluster.status());
  const std::vector<MigrationFile> made = FilesOf(*cluster, *hyper_nodes);
  if (absl::Status status = WriteFiles(made, files.directory); !status.ok())
    return session.Finish(status);
  for (const std::string& warning : site->warnings) session.Warn(warning);
  for (const MigrationFile& file : made)
    session.out() << files.directory << "/" << file.name << ": " << file.use << "\n";
  const std::vector<std::string> lines = LinesOf(cluster->left_out);
  if (lines.empty()) return ExitCode::kOk;
  session.out() << "\nnot taken over:\n";
  for (const std::string& line : lines) session.out() << "  " << line << "\n";
  return ExitCode::kOk;
}

}  // namespace

void AddMigrateCommand(CLI::App& app, Session& session) {
  CLI::App* noun = AddNoun(app, "migrate", "move to Berth from another scheduler");
  auto files = std::make_shared<SlurmFiles>();
  CLI::App* slurm =
      AddCommand(*noun, session, "slurm", "write manifests and configuration for a Slurm cluster",
                 [files](Session& s) { return MigrateSlurm(s, *files); });
  slurm->add_option("--conf", files->config, "slurm.conf; may be repeated, for included files")
      ->required()
      ->allow_extra_args(false);
  slurm->add_option("--topology", files->topology, "topology.conf")->allow_extra_args(false);
  slurm->add_option("--associations", files->associations,
                    "of sacctmgr dump CLUSTER file=FILE, or of sacctmgr show assoc tree -P");
  slurm->add_option("--qos", files->qos, "of sacctmgr show qos -P");
  slurm
      ->add_option("--output-directory", files->directory,
                   "where the files are written; existing ones are not replaced")
      ->required();
}

}  // namespace berth
