#include "clients/session/task_command.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>

#include "support/visible.h"

namespace berth {
namespace {

using Stream = grpc::ClientReaderWriterInterface<v1::ExecRequest, v1::ExecResponse>;

constexpr size_t kGiveBytes = size_t{32} << 10;
constexpr size_t kMaxErrorBytes = size_t{64} << 10;

void GiveInput(const TaskCommand& command, Stream* stream, grpc::ClientContext* context) {
  const auto write = [stream](absl::string_view data) {
    for (size_t at = 0; at < data.size(); at += kGiveBytes) {
      v1::ExecRequest request;
      request.set_input(std::string(data.substr(at, kGiveBytes)));
      if (!stream->Write(request)) return false;
    }
    return true;
  };
  if (command.give && !command.give(write)) return context->TryCancel();
  v1::ExecRequest end;
  end.set_input_end(true);
  stream->Write(end);
}

// Returns a piece of standard output, empty at the end. Adds standard error to `errors`: the other
// thread may print its progress.
std::string NextPiece(Stream* stream, std::string* errors, std::optional<int>* exit_code) {
  v1::ExecResponse answer;
  while (stream->Read(&answer)) {
    if (answer.has_exit_code()) *exit_code = answer.exit_code();
    if (answer.stream() == v1::STDERR) {
      if (errors->size() < kMaxErrorBytes) *errors += answer.output();
    } else if (!answer.output().empty()) {
      return std::move(*answer.mutable_output());
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<int> RunInTask(Client& client, const std::string& job, const std::string& task,
                              const TaskCommand& command, std::ostream& err) {
  v1::ExecRequest first;
  first.mutable_open()->set_job(job);
  first.mutable_open()->set_task(task);
  for (const std::string& word : command.argv) first.mutable_open()->add_command(word);
  std::optional<int> exit_code;
  std::string errors;
  const absl::Status status = client.CallOnce([&](grpc::ClientContext* context) {
    const std::unique_ptr<Stream> stream = client.stub<v1::JobService>().Exec(context);
    stream->Write(first);
    v1::ExecResponse begun;
    if (!stream->Read(&begun)) return stream->Finish();
    std::thread giver([&] { GiveInput(command, stream.get(), context); });
    const TaskCommand::Next next = [&] { return NextPiece(stream.get(), &errors, &exit_code); };
    if (command.take && !command.take(next)) context->TryCancel();
    while (!next().empty()) {
    }
    giver.join();
    return stream->Finish();
  });
  err << VisibleLines(errors) << std::flush;
  if (!status.ok()) return status;
  if (!exit_code.has_value()) return absl::UnavailableError("the command's end was not reported");
  return *exit_code;
}

}  // namespace berth
