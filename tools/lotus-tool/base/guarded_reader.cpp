#include "base/guarded_reader.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

namespace lotus::tool {
namespace {

bool send_all(int socket, const char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t sent = ::send(socket, bytes, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes += sent;
    count -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t got = ::recv(socket, bytes, count, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    count -= static_cast<std::size_t>(got);
  }
  return true;
}

bool send_text(int socket, const std::string& text) {
  const auto bytes = static_cast<std::uint32_t>(text.size());
  return send_all(socket, reinterpret_cast<const char*>(&bytes), sizeof bytes) &&
         send_all(socket, text.data(), text.size());
}

std::optional<std::string> receive_text(int socket) {
  constexpr std::uint32_t max_bytes = 16 << 20;
  std::uint32_t bytes = 0;
  if (!receive_all(socket, reinterpret_cast<char*>(&bytes), sizeof bytes) || bytes > max_bytes) {
    return std::nullopt;
  }
  std::string text(bytes, '\0');
  return receive_all(socket, text.data(), bytes) ? std::optional(text) : std::nullopt;
}

void limit(decltype(RLIMIT_AS) what, std::uint64_t to) {
  rlimit now{};
  if (::getrlimit(what, &now) != 0 || now.rlim_cur < to) return;
  now.rlim_cur = to;
  ::setrlimit(what, &now);
}

/// Limits what this process may map from now on. AddressSanitizer maps terabytes, so that there is
/// no limit with it.
void limit_memory([[maybe_unused]] std::uint64_t bytes) {
#if !defined(__SANITIZE_ADDRESS__)
  std::uint64_t pages = 0;
  std::ifstream{"/proc/self/statm"} >> pages;
  limit(RLIMIT_AS, pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + bytes);
#endif
}

[[noreturn]] void answer_until_end(int socket, read_budget budget,
                                   const std::function<std::string(const std::string&)>& answer) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGSEGV, SIGBUS, SIGXCPU}) {
    ::signal(signal, SIG_DFL);
  }
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, budget.seconds());
  limit_memory(budget.memory_bytes());
  try {
    while (const std::optional<std::string> question = receive_text(socket)) {
      if (!send_text(socket, answer(*question))) break;
    }
  } catch (...) {
    // The end of the child process shows the failure.
  }
  ::_exit(0);
}

}  // namespace

bool is_nested_too_deeply(std::string_view json) noexcept {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\') ++i;
    if (quoted) continue;
    if ((c == '[' || c == '{') && ++depth > max_nesting) return true;
    if ((c == ']' || c == '}') && depth > 0) --depth;
  }
  return false;
}

guarded_reader::guarded_reader(read_budget budget,
                               const std::function<std::string(const std::string&)>& answer) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return;
  child_ = ::fork();
  if (child_ == 0) {
    ::close(sockets[0]);
    answer_until_end(sockets[1], budget, answer);
  }
  ::close(sockets[1]);
  socket_ = sockets[0];
}

guarded_reader::~guarded_reader() {
  end();
}

void guarded_reader::end() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  if (child_ <= 0) return;
  ::kill(child_, SIGKILL);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
}

std::optional<std::string> guarded_reader::ask(const std::string& question) {
  if (child_ <= 0) return std::nullopt;
  std::optional<std::string> answer;
  if (send_text(socket_, question)) answer = receive_text(socket_);
  if (!answer) end();
  return answer;
}

}  // namespace lotus::tool
