// App: a whole berthd in one object. Loads, wires loop, controllers and services, listens, and
// stops in order.
//
//   absl::StatusOr<std::unique_ptr<App>> app = App::Start(config, open_store);
//   ... wait for SIGTERM ...
//   (*app)->Stop();
#ifndef BERTH_SERVER_APP_H_
#define BERTH_SERVER_APP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/config/reload.h"

namespace berth {

class HighAvailability;
class Loop;
class Store;
class StoreHealth;
class WatchHub;

// The store, and with high availability what else belongs to it.
struct OpenedStore {
  OpenedStore(std::shared_ptr<Store> opened, std::shared_ptr<HighAvailability> with = nullptr)
      : store(std::move(opened)), ha(std::move(with)) {}
  template <class S>
  OpenedStore(std::unique_ptr<S> opened) : store(std::move(opened)) {}
  std::shared_ptr<Store> store;
  std::shared_ptr<HighAvailability> ha;  // null: this server is alone
  uint64_t term = 0;  // of a server that is alone now: the last one of its cluster
};
using StoreOpener = std::function<absl::StatusOr<OpenedStore>()>;

class App {
 public:
  // `config` is completed (CompleteConfig). The health pages respond from the beginning, with
  // "loading" until the store is open and loaded. Returns when calls are accepted. `reread` reads
  // and completes the configuration again, for Reload; null: it cannot. `health` is the store's;
  // null: it has none.
  static absl::StatusOr<std::unique_ptr<App>> Start(const config::v1::Server& config,
                                                    const StoreOpener& open_store,
                                                    Reloader::Read reread = nullptr,
                                                    std::shared_ptr<StoreHealth> health = nullptr);
  // Stop().
  ~App();

  // Before a planned stop: grants agents a longer lease, so that their tasks survive it. Takes a
  // fraction of a second, or a few seconds if an agent or the disk does not respond.
  void GrantStopLease();
  // Closes the streams of agents and watchers, answers calls in progress once their data is durable
  // (for up to kStopPatience), accepts no more calls, writes what is pending, and closes the store.
  // Takes a fraction of a second, unless the disk is slow or full. Idempotent.
  void Stop();
  static constexpr absl::Duration kStopPatience = absl::Seconds(5);

  // Before a planned stop of a server that leads others: another takes over at once. False: there
  // is none.
  bool TryHandOver();
  // It hands over to another server, or must: the process stops and is to be started again with
  // kExitToRestart.
  bool handed_over() const;

  // server/config/reload.h. Thread-safe.
  absl::StatusOr<std::vector<ConfigChange>> Reload();

  int port() const;
  int http_port() const;
  Loop& loop();
  WatchHub& watch_hub();

 private:
  class Parts;
  explicit App(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace berth

#endif  // BERTH_SERVER_APP_H_
