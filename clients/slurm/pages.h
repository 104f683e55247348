// Reads all pages of a list.
#ifndef BERTH_CLIENTS_SLURM_PAGES_H_
#define BERTH_CLIENTS_SLURM_PAGES_H_

#include <utility>

#include "clients/cpp/client.h"

namespace berth {

inline constexpr int kPageRows = 1000;

// Calls see(page) for each.
template <class Stub, class Request, class Response, class See>
absl::Status ReadPages(Client& client,
                       grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                    Response*),
                       Request request, See&& see) {
  request.set_page_size(kPageRows);
  return client.List<Stub, Request, Response>(method, std::move(request),
                                              [&](const Response& page) {
                                                see(page);
                                                return true;
                                              });
}

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_PAGES_H_
