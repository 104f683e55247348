#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "clients/cli/by_name.h"
#include "clients/cli/queue_view.h"
#include "clients/cli/resource_names.h"
#include "clients/cli/share_view.h"
#include "support/number_check.h"
#include "support/yaml_proto.h"

namespace berth {
namespace {

using QueueStub = v1::QueueService::StubInterface;

absl::Status ListQueues(Session& session) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  std::vector<v1::Queue> queues;
  const absl::Status status =
      (*client)->List<QueueStub, v1::ListQueuesRequest, v1::ListQueuesResponse>(
          &QueueStub::ListQueues, v1::ListQueuesRequest(), [&](const v1::ListQueuesResponse& page) {
            queues.insert(queues.end(), page.queues().begin(), page.queues().end());
            return true;
          });
  if (status.ok()) Print(session, queues, false, QueueShape());
  return status;
}

// `queue`: this queue and its descendants; empty: all.
ExitCode Shares(Session& session, const std::string& queue) {
  v1::ListQueueSharesRequest request;
  request.set_queue(queue);
  const absl::StatusOr<v1::ListQueueSharesResponse> shares =
      session.Call(&QueueStub::ListQueueShares, request);
  if (!shares.ok()) return session.Finish(shares.status());
  switch (session.options.format) {
    case Format::kJson:
      session.out() << JsonOf(*shares) << "\n";
      break;
    case Format::kYaml:
      session.out() << YamlOf(*shares);
      break;
    case Format::kName:
      for (const v1::QueueShares& one : shares->shares()) {
        session.out() << "queue/" << one.queue() << "\n";
      }
      break;
    default:
      if (shares->shares().empty()) session.err() << "no queues\n";
      session.out() << ShareTable(*shares).Render(session.table_style());
  }
  return ExitCode::kOk;
}

// The values of --parent, --limit and the other options: the given fields, and their mask.
struct QueueArguments {
  std::string name;
  v1::QueueSpec spec;
  google::protobuf::FieldMask mask;
  std::vector<std::string> limit, deserved, guarantee;
  std::map<std::string, std::string> values;  // by the option that gave them: "--weight"
  std::vector<std::string> labels;
};

// Options whose value is read as in a manifest.
struct ValueOption {
  const char* option;
  const char* key;    // in a manifest
  const char* field;  // of QueueSpec
  const char* help;
};
constexpr ValueOption kValueOptions[] = {
    {"--weight", "weight", "weight", "share of the rest beyond deserved, 0..65535; default 1"},
    {"--priority", "priority", "priority", "among siblings, higher first; default 0"},
    {"--reclaimable", "reclaimable", "reclaimable",
     "true or false: borrowed resources may be reclaimed; default true"},
    {"--order", "order", "order", "fifo-skip or fifo-strict"},
    {"--user-fairness", "userFairness", "user_fairness", "none or drf"},
    {"--defaults", "defaults", "defaults",
     "for jobs that do not set them: '{cpu: 1, memory: 2Gi, walltime: 1h}'; each is optional"},
    {"--strategy", "strategy", "strategy", "of its jobs: binpack, spread or colocate"},
    {"--device-strategy", "deviceStrategy", "device_strategy",
     "of its jobs, for shares of the devices of one node: binpack or spread"},
    {"--surplus-only", "surplusOnly", "surplus_only",
     "true or false: only surplus tasks of its jobs are evicted for others; default false"},
    {"--slice", "slice", "slice",
     "turns of its jobs of equal priority with preemptMode Pause, such as 5m; default none"}};

// "--limit gpu=64" means what "limit: {gpu: 64}" means in a manifest.
absl::Status ReadAmounts(const std::vector<std::string>& amounts, const std::string& field,
                         v1::ResourceList* list, QueueArguments* arguments) {
  std::string text;
  for (const std::string& amount : amounts) {
    const auto pair = KeyValueFrom(amount);
    if (pair.first == "none") continue;
    absl::StrAppend(&text, pair.first, ": \"", pair.second, "\"\n");
  }
  arguments->mask.add_paths("spec." + field);
  return ReadYaml(text, "--" + field, list);
}

absl::Status ReadShares(QueueArguments* arguments) {
  absl::Status status;
  v1::QueueSpec& spec = arguments->spec;
  if (!arguments->limit.empty()) {
    status.Update(ReadAmounts(arguments->limit, "limit", spec.mutable_limit(), arguments));
  }
  if (!arguments->deserved.empty()) {
    status.Update(ReadAmounts(arguments->deserved, "deserved", spec.mutable_deserved(), arguments));
  }
  if (!arguments->guarantee.empty()) {
    status.Update(
        ReadAmounts(arguments->guarantee, "guarantee", spec.mutable_guarantee(), arguments));
  }
  return status;
}

absl::Status ReadValues(QueueArguments* arguments) {
  for (const ValueOption& option : kValueOptions) {
    const auto given = arguments->values.find(option.option);
    if (given == arguments->values.end()) continue;
    v1::QueueSpec read;
    const absl::Status status =
        ReadYaml(absl::StrCat(option.key, ": ", given->second), option.option, &read);
    if (!status.ok()) return status;
    arguments->spec.MergeFrom(read);
    arguments->mask.add_paths(absl::StrCat("spec.", option.field));
  }
  return absl::OkStatus();
}

absl::Status CompleteQueue(QueueArguments* arguments) {
  if (!arguments->labels.empty()) arguments->mask.add_paths("spec.labels");
  for (const std::string& label : arguments->labels) {
    const auto pair = KeyValueFrom(label);
    (*arguments->spec.mutable_labels())[pair.first] = pair.second;
  }
  absl::Status status = ReadShares(arguments);
  status.Update(ReadValues(arguments));
  return status;
}

ExitCode CreateQueue(Session& session, QueueArguments arguments) {
  const absl::Status complete = CompleteQueue(&arguments);
  const absl::StatusOr<Client*> client = session.client();
  if (!complete.ok() || !client.ok())
    return session.Finish(complete.ok() ? client.status() : complete);
  v1::CreateQueueRequest request;
  request.mutable_queue()->set_name(arguments.name);
  *request.mutable_queue()->mutable_spec() = arguments.spec;
  const absl::StatusOr<v1::Queue> queue = (*client)->CreateQueue(request);
  if (queue.ok()) PrintChanged(session, *queue, "created", QueueShape());
  return session.Finish(queue.status());
}

ExitCode UpdateQueue(Session& session, QueueArguments arguments) {
  const absl::Status complete = CompleteQueue(&arguments);
  if (!complete.ok()) return session.Finish(complete);
  if (arguments.mask.paths().empty()) {
    session.err() << "berth: nothing to update: see berth queue update --help\n";
    return ExitCode::kUsage;
  }
  v1::UpdateQueueRequest request;
  request.mutable_queue()->set_name(arguments.name);
  *request.mutable_queue()->mutable_spec() = arguments.spec;
  *request.mutable_update_mask() = arguments.mask;
  const absl::StatusOr<v1::Queue> queue = session.Call(&QueueStub::UpdateQueue, request);
  if (queue.ok()) PrintChanged(session, *queue, "updated", QueueShape());
  return session.Finish(queue.status());
}

void AddQueueOptions(CLI::App* command, const std::shared_ptr<QueueArguments>& arguments) {
  command->add_option("NAME", arguments->name, "queue")->required()->transform(NameOf("queue"));
  const auto amounts = [&](const char* option, std::vector<std::string>& list, const char* help) {
    command->add_option(option, list, help)->allow_extra_args(false)->check(kIsKeyValue);
  };
  amounts("--limit", arguments->limit,
          "hard cap, such as cpu=96, memory=1Ti or gpu=64; may be repeated");
  amounts("--deserved", arguments->deserved, "entitlement; others may borrow it while it is idle");
  amounts("--guarantee", arguments->guarantee, "set aside; no other queue may use it");
  for (const ValueOption& value : kValueOptions) {
    command->add_option_function<std::string>(
        value.option,
        [arguments, name = value.option](const std::string& text) {
          arguments->values[name] = text;
        },
        value.help);
  }
  const auto number = [&](const char* option, const char* path, const char* help,
                          void (v1::QueueSpec::*set)(int32_t)) {
    command
        ->add_option_function<int32_t>(
            option,
            [arguments, path, set](int32_t value) {
              (arguments->spec.*set)(value);
              arguments->mask.add_paths(path);
            },
            help)
        ->check(WholeNumber(0));
  };
  number("--max-jobs", "spec.max_jobs", "jobs that have not ended; 0 = no limit",
         &v1::QueueSpec::set_max_jobs);
  number("--max-running-jobs", "spec.max_running_jobs", "jobs that hold resources; 0 = no limit",
         &v1::QueueSpec::set_max_running_jobs);
  number("--max-tasks", "spec.max_tasks", "tasks of jobs that have not ended; 0 = no limit",
         &v1::QueueSpec::set_max_tasks);
  command->add_option("--label,-l", arguments->labels, "replaces all labels; may be repeated")
      ->allow_extra_args(false)
      ->check(kIsKeyValue);
}

}  // namespace

void AddQueueCommands(CLI::App& app, Session& session) {
  CLI::App& noun = *AddNoun(app, "queue", "the tree of queues that share the cluster");
  auto watch = std::make_shared<bool>(false);
  CLI::App* list = AddCommand(noun, session, "list", "list queues as a tree", [watch](Session& s) {
    if (!*watch) return s.Finish(ListQueues(s));
    v1::WatchRequest subject;
    subject.set_queues(true);
    return WatchList(s, subject, [&s] { return ListQueues(s); });
  });
  list->add_flag("--watch,-w", *watch, "print the list again after every change");
  AddNames(noun, session, "get", "show queues by name", [](Session& s, const Names& names) {
    return GetByName(s, names, &QueueStub::GetQueue, QueueShape());
  });
  AddNames(noun, session, "describe", "show details of queues", [](Session& s, const Names& names) {
    return DescribeByName(s, names, &QueueStub::GetQueue, "queue",
                          [&](const v1::Queue& queue) { return DescribeQueue(queue, s); });
  });
  auto top = std::make_shared<std::string>();
  CLI::App* shares =
      AddCommand(noun, session, "shares", "show what queues hold, borrow and deserve, and why",
                 [top](Session& s) { return Shares(s, *top); });
  shares->add_option("NAME", *top, "this queue and its descendants; default: all")
      ->transform(NameOf("queue"));
  auto created = std::make_shared<QueueArguments>();
  CLI::App* create = AddCommand(noun, session, "create", "create a queue",
                                [created](Session& s) { return CreateQueue(s, *created); });
  create
      ->add_option_function<std::string>(
          "--parent", [created](const std::string& parent) { created->spec.set_parent(parent); },
          "parent queue; default: the root")
      ->transform(NameOf("queue"));
  AddQueueOptions(create, created);
  auto updated = std::make_shared<QueueArguments>();
  AddQueueOptions(AddCommand(noun, session, "update", "change the given fields",
                             [updated](Session& s) { return UpdateQueue(s, *updated); }),
                  updated);
  AddNames(noun, session, "delete", "delete empty queues", [](Session& s, const Names& names) {
    return DeleteByName(s, names, "queue", [](Client& client, const std::string& name) {
      return client.DeleteQueue(name);
    });
  });
  AddNames(noun, session, "open", "accept and start jobs", [](Session& s, const Names& names) {
    return ChangeByName(s, names, &QueueStub::OpenQueue, "opened", QueueShape());
  });
  AddNames(noun, session, "close", "stop accepting and starting jobs; running jobs continue",
           [](Session& s, const Names& names) {
             return ChangeByName(s, names, &QueueStub::CloseQueue, "closed", QueueShape());
           });
}

}  // namespace berth
