// Accounts of this machine, as its name services (NSS: files, SSSD, LDAP) know them.
#ifndef BERTH_CLIENTS_AUTHD_ACCOUNT_H_
#define BERTH_CLIENTS_AUTHD_ACCOUNT_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace berth {

struct Account {
  std::string name;
  std::vector<std::string> groups;  // in the order of the name service
};

// May wait for a directory server. Groups without a name that a certificate can carry are left out:
// no rule could name them. NOT_FOUND: nobody has this uid; UNAVAILABLE: the name service
// does not answer; RESOURCE_EXHAUSTED: more groups than a certificate carries.
absl::StatusOr<Account> AccountOf(uid_t uid);

// What the kernel reports for users that this user namespace does not know; nobody's identity.
uid_t OverflowUid();

}  // namespace berth

#endif  // BERTH_CLIENTS_AUTHD_ACCOUNT_H_
