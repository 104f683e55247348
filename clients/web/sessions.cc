#include "clients/web/sessions.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace berth::web {
namespace {

constexpr size_t kSecretBytes = 32;

std::string HashOf(const std::string& secret) {
  std::string hash(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(secret.data()), secret.size(),
         reinterpret_cast<unsigned char*>(hash.data()));
  return hash;
}

}  // namespace

std::string NewSecret() {
  std::string bytes(kSecretBytes, '\0');
  const int made =
      RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  if (made != 1) abort();  // no secret may be guessable
  return absl::WebSafeBase64Escape(bytes);
}

bool SecretsEqual(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool Session::TakeCredit(absl::Duration now) {
  const double seconds = absl::ToDoubleSeconds(std::max(now - used_, absl::ZeroDuration()));
  credit_ = std::min(limits_.calls_together, credit_ + seconds * limits_.calls_per_second);
  used_ = now;
  if (credit_ < 1) return false;
  credit_ -= 1;
  return true;
}

absl::Status Session::CallBegins(absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  if (calls_ >= limits_.calls_at_once) {
    return absl::ResourceExhaustedError(
        absl::StrCat("this session makes ", limits_.calls_at_once, " calls already; try again"));
  }
  if (!TakeCredit(now)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("more than ", limits_.calls_per_second, " calls a second; call less often"));
  }
  ++calls_;
  return absl::OkStatus();
}

void Session::CallEnded() {
  absl::MutexLock lock(&mutex_);
  --calls_;
}

absl::Status Session::StreamBegins(absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  if (streams_ >= limits_.streams || !TakeCredit(now)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("this session has ", streams_, " streams; close other pages of it"));
  }
  ++streams_;
  return absl::OkStatus();
}

void Session::StreamEnded() {
  absl::MutexLock lock(&mutex_);
  --streams_;
}

bool Session::IdleSince(absl::Duration before) const {
  absl::MutexLock lock(&mutex_);
  return used_ < before && streams_ == 0 && calls_ == 0;
}

absl::StatusOr<std::string> Sessions::Add(std::shared_ptr<Session> session) {
  std::string secret = NewSecret();
  absl::MutexLock lock(&mutex_);
  const auto of_user = std::count_if(sessions_.begin(), sessions_.end(), [&](const auto& entry) {
    return entry.second->user == session->user;
  });
  if (sessions_.size() >= kSessions || of_user >= static_cast<long>(kSessionsOfUser)) {
    return absl::ResourceExhaustedError("too many sessions; sign out elsewhere, or wait an hour");
  }
  sessions_[HashOf(secret)] = std::move(session);
  return secret;
}

std::shared_ptr<Session> Sessions::Find(const std::string& secret, absl::Time now) const {
  if (secret.empty()) return nullptr;
  absl::MutexLock lock(&mutex_);
  const auto found = sessions_.find(HashOf(secret));
  if (found == sessions_.end() || found->second->end <= now) return nullptr;
  return found->second;
}

void Sessions::Remove(const std::string& secret, const absl::Status& why) {
  std::shared_ptr<Session> session;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = sessions_.find(HashOf(secret));
    if (found == sessions_.end()) return;
    session = std::move(found->second);
    sessions_.erase(found);
  }
  session->live->End(why);
}

void Sessions::Sweep(absl::Duration steady, absl::Time now) {
  std::vector<std::shared_ptr<Session>> over;
  {
    absl::MutexLock lock(&mutex_);
    for (auto entry = sessions_.begin(); entry != sessions_.end();) {
      const Session& session = *entry->second;
      if (session.end > now && !session.IdleSince(steady - kSessionIdle)) {
        ++entry;
        continue;
      }
      over.push_back(std::move(entry->second));
      entry = sessions_.erase(entry);
    }
  }
  for (const auto& session : over) {
    session->live->End(absl::UnauthenticatedError("the sign-in has ended"));
  }
}

std::vector<std::shared_ptr<Session>> Sessions::All() const {
  std::vector<std::shared_ptr<Session>> all;
  absl::MutexLock lock(&mutex_);
  all.reserve(sessions_.size());
  for (const auto& [hash, session] : sessions_) all.push_back(session);
  return all;
}

}  // namespace berth::web
