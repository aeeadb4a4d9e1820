#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <lotus/lotus.hpp>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "imagenet/shared_memory.hpp"
#include "imagenet/workers.hpp"

namespace imagenet {
namespace {

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error{errno, std::generic_category(), what};
}

class file_descriptor {
 public:
  explicit file_descriptor(int fd) : fd_{fd} {}
  file_descriptor(file_descriptor&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
  file_descriptor& operator=(file_descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  file_descriptor(const file_descriptor&) = delete;
  file_descriptor& operator=(const file_descriptor&) = delete;
  ~file_descriptor() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }

 private:
  int fd_;
};

struct socket_pair {
  socket_pair() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) throw_errno("socketpair");
    first = file_descriptor{fds[0]};
    second = file_descriptor{fds[1]};
  }
  file_descriptor first{-1};
  file_descriptor second{-1};
};

/// Sends a task. Returns false if the other end of the socket is closed.
bool send_task(int socket, const batch_task& task) {
  ssize_t sent = -1;
  do {
    sent = send(socket, &task, sizeof task, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == ssize_t{sizeof task};
}

/// Receives a task. Returns false if the other end of the socket is closed.
bool receive_task(int socket, batch_task& task) {
  ssize_t got = -1;
  do {
    got = recv(socket, &task, sizeof task, 0);
  } while (got < 0 && errno == EINTR);
  return got == ssize_t{sizeof task};
}

/// Returns how a process ended, as text, given its wait status; empty if it succeeded.
std::string ending(int status) {
  if (WIFSIGNALED(status))
    return std::string{"was ended by signal: "} + strsignal(WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) return "failed with status " + std::to_string(WEXITSTATUS(status));
  return {};
}

/// Workers that are forked processes. Each process receives its tasks through its own socket; the
/// kernel closes the socket when the process ends, so that the other side notices. All processes
/// report finished batches through one common socket, which keeps them in the order in which they
/// were finished.
class worker_processes : public workers {
 public:
  worker_processes(std::size_t count, const std::function<batch_maker()>& new_maker)
      : stop_memory_{sizeof(std::atomic<bool>)},
        stop_{*new (stop_memory_.data()) std::atomic<bool>{false}} {
    // Write buffered output now. Otherwise, each child would have a copy of the buffer and print it
    // again.
    static_cast<void>(std::fflush(nullptr));
    try {
      while (processes_.size() < count) start_process(new_maker);
    } catch (...) {
      end_all();
      throw;
    }
    made_.second = file_descriptor{-1};
  }
  worker_processes(const worker_processes&) = delete;
  worker_processes& operator=(const worker_processes&) = delete;
  ~worker_processes() override { end_all(); }

  void give(std::size_t worker, const batch_task& task) override {
    if (!send_task(processes_[worker].tasks.get(), task)) throw_failed(processes_[worker]);
  }

  batch_task take() override {
    std::vector<pollfd> events{{made_.first.get(), POLLIN, 0}};
    for (const process& p : processes_) events.push_back({p.tasks.get(), POLLIN, 0});
    while (poll(events.data(), events.size(), -1) < 0) {
      if (errno != EINTR) throw_errno("poll");
    }
    batch_task task;
    // Return finished batches before reporting a dead worker, so that no batch that the worker had
    // finished is lost.
    if ((events[0].revents & POLLIN) != 0 && receive_task(made_.first.get(), task)) return task;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (events[i + 1].revents != 0) throw_failed(processes_[i]);
    }
    throw std::runtime_error{"the worker processes are gone"};
  }

 private:
  struct process {
    pid_t pid = -1;
    file_descriptor tasks{-1};
  };

  void start_process(const std::function<batch_maker()>& new_maker) {
    socket_pair tasks;
    processes_.reserve(processes_.size() + 1);
    const pid_t pid = fork();
    if (pid < 0) throw_errno("fork");
    if (pid == 0) {
      // Close the parent's ends of the sockets, which this worker has inherited. If they remained
      // open here, other workers would not notice when the parent ends.
      processes_.clear();
      tasks.first = file_descriptor{-1};
      made_.first = file_descriptor{-1};
      work_and_exit(tasks.second.get(), new_maker);
    }
    processes_.push_back({pid, std::move(tasks.first)});
  }

  [[noreturn]] void work_and_exit(int tasks, const std::function<batch_maker()>& new_maker) {
    // Ctrl-C sends SIGINT to all processes in the terminal. Ignore it, because the parent decides
    // when the workers end.
    static_cast<void>(signal(SIGINT, SIG_IGN));
    static_cast<void>(signal(SIGTERM, SIG_DFL));
    int status = 0;
    try {
      const batch_maker make = new_maker();
      batch_task task;
      while (receive_task(tasks, task) && !stop_) {
        make(task);
        if (!send_task(made_.second.get(), task)) break;
      }
    } catch (const std::exception& error) {
      static_cast<void>(std::fprintf(stderr, "worker %d: %s\n", getpid(), error.what()));
      status = 1;
    }
    lotus::stop();
    std::_Exit(status);  // without destructors, because the parent cleans up everything else
  }

  [[noreturn]] static void throw_failed(process& p) {
    const std::string which = "worker process " + std::to_string(p.pid);
    const std::string how = wait_for(p);
    throw std::runtime_error{which + (how.empty() ? " ended too early" : " " + how)};
  }

  static std::string wait_for(process& p) {
    p.tasks = file_descriptor{-1};
    int status = 0;
    while (waitpid(p.pid, &status, 0) < 0 && errno == EINTR) {
    }
    p.pid = -1;
    return ending(status);
  }

  void end_all() {
    stop_ = true;
    for (process& p : processes_) p.tasks = file_descriptor{-1};
    for (process& p : processes_) {
      if (p.pid > 0) wait_for(p);
    }
  }

  shared_memory stop_memory_;
  std::atomic<bool>& stop_;
  /// The sockets for finished batches: workers write to `second`, and the consumer reads from
  /// `first`.
  socket_pair made_;
  std::vector<process> processes_;
};

}  // namespace

std::unique_ptr<workers> start_worker_processes(std::size_t count,
                                                const std::function<batch_maker()>& new_maker) {
  return std::make_unique<worker_processes>(count, new_maker);
}

}  // namespace imagenet
