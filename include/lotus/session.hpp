// The one session of a process: start and stop, the environment, shared objects, fork.
#ifndef LOTUS_SESSION_HPP
#define LOTUS_SESSION_HPP

#include <stdlib.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>

#include "lotus/base/fork.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/collectors/annotate.hpp"
#include "lotus/config.hpp"
#include "lotus/options.hpp"
#include "lotus/record/hub.hpp"
#include "lotus/record/join.hpp"
#include "lotus/record/message.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/record_kinds.hpp"
#include "lotus/record/shared_objects.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/recovery/directory.hpp"
#include "lotus/store/recorder.hpp"
#include "lotus/store/recorder_forks.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Made at first use, never destroyed. Its control lock is taken before any of the recorder's; the
/// list of shared objects is a leaf.
class LOTUS_DETAIL_PER_MODULE session {
 public:
  static session& instance() noexcept { return *instance_; }
  static bool exists() noexcept { return instance_ != nullptr; }
  static const services* make() noexcept;

  recorder& records() noexcept { return recorder_; }

  void join(module_state& m, bool environment_counts) noexcept {
    choose_annotation();  // may load a library: before any lock
    const signals_blocked quiet;
    // Outside of every lock too: the loader, which it asks, may be running a static constructor
    // that records.
    if (!pinned_.exchange(true)) pin_module_of(&instance_);
    if (this_thread_forks) return;  // the next scope joins
    const locked control{control_};
    if (environment_counts && !environment_read_) start_as_environment_says();
    modules_.tell(m, table_, recorder_.clock().hardware(), mode());
    // Others may have come while the library was being loaded.
    if (annotation_wanted()) modules_.set_mode(mode());
  }

  void leave(module_state& m) noexcept {
    const signals_blocked quiet;
    if (&m != &this_module) return modules_.remove(m);
    // That of the object with this code is destroyed when the process exits, for it is pinned.
    const locked control{control_};
    recorder_.close_at_exit();
  }

  bool start(const options& chosen) noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    environment_read_ = true;
    if (recorder_.is_on() && !started_by_environment_) return already_recording(chosen);
    end();
    started_by_environment_ = false;
    return begin(chosen);
  }

  void stop() noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    environment_read_ = true;
    end();
  }

  /// What a record of this tag is called.
  std::string_view name_in(record_tag tag) const noexcept {
    const record_kind& kind = kind_of(tag);
    return has_name(kind) ? recorder_.name(name_of(kind, tag)).raw() : kind.task();
  }

  void begin_task_of(record_tag tag) noexcept {
    const record_kind& kind = kind_of(tag);
    if (!has_name(kind)) {
      return begin_task(kind.task(), kind_handles_[static_cast<std::uint8_t>(kind.kind)]);
    }
    const name_entry& name = recorder_.name(name_of(kind, tag));
    begin_task(name.raw(), name.task_handle);
  }

 private:
  recording mode() const noexcept {
    if (annotation_wanted()) return recording::annotated;
    return recorder_.is_on() ? recording::on : recording::off;
  }

  // --- caller holds control_

  void start_as_environment_says() noexcept {
    environment_read_ = true;
    const char* log_file = secure_getenv("LOTUS_LOG_FILE");
    if (log_file == nullptr || *log_file == '\0') return;
    options chosen;
    chosen.log_file = log_file;
    started_by_environment_ = begin(chosen);
  }

  bool already_recording(const options& chosen) noexcept {
    log_location asked;
    const log_location& now = recorder_.location();
    if (asked.parse(chosen.log_file) == 0 && std::strcmp(asked.directory, now.directory) == 0 &&
        std::strcmp(asked.prefix, now.prefix) == 0) {
      return true;
    }
    say("already recording to %s/%s_*; call lotus::stop() before another lotus::start()",
        now.directory, now.prefix);
    return false;
  }

  bool begin(const options& chosen) noexcept {
    if (!recorder_.open(chosen)) return false;
    modules_.set_mode(mode());
    return true;
  }

  void end() noexcept {
    if (!recorder_.is_on()) return;
    recorder_.close();
    modules_.set_mode(mode());
  }

  // --- fork: parent and child each go on with a whole session

  static void before_fork() noexcept {
    session& s = instance();
    s.control_.lock();
    s.recorder_.before_fork();
    s.modules_.fork_lock().lock();
  }

  static void after_fork_in_parent() noexcept { instance().unlock_after_fork(); }

  static void after_fork_in_child() noexcept {
    instance().recorder_.become_child();
    instance().unlock_after_fork();
  }

  void unlock_after_fork() noexcept {
    modules_.fork_lock().unlock();
    recorder_.after_fork();
    control_.unlock();
  }

  static session* instance_;
  static constexpr services table() noexcept;
  static const services table_;

  mutex control_;
  std::atomic<bool> pinned_{false};
  bool environment_read_ = false;
  bool started_by_environment_ = false;
  std::atomic<void*> kind_handles_[record_kinds.size()]{};  ///< as name_entry::task_handle
  std::atomic<std::uint32_t> async_ids_{0};
  module_list modules_;
  recorder recorder_;
};

inline session* session::instance_ = nullptr;

constexpr services session::table() noexcept {
  services s{};
  s.this_thread = []() noexcept { return instance().records().this_thread(); };
  s.push_slow = [](producer& p, const record& r) noexcept { instance().records().push_slow(p, r); };
  s.push_nested = [](producer& p, const record& r) noexcept {
    instance().records().push_nested(p, r);
  };
  s.intern = [](std::string_view name) noexcept { return instance().records().intern(name); };
  s.refuse_batch = [](std::uint64_t number) noexcept {
    if (losses* const told = instance().records().losses_if_on()) told->refused_batch(number);
  };
  s.enter_loader = [](std::uint32_t loader) noexcept {
    return instance().records().enter_loader(loader);
  };
  s.read_cpu = [](producer& p, cpu_watch& watch) noexcept {
    return instance().records().read_cpu(p, watch);
  };
  s.take_async_ids = []() noexcept { return instance().async_ids_.fetch_add(async_ids_at_once); };
  s.ticks_at = [](std::int64_t ns) noexcept { return instance().records().clock().ticks_at(ns); };
  s.crossed_threads = [](record_tag tag) noexcept {
    losses* const told = instance().records().losses_if_on();
    if (told != nullptr) told->crossed_threads(instance().name_in(tag));
  };
  s.start = [](const start_request& asked) noexcept {
    options chosen;
    chosen.log_file.assign(asked.log_file, asked.log_file_bytes);
    chosen.when_full = asked.when_full;
    chosen.ring_records = asked.ring_records;
    chosen.drain_interval_ms = asked.drain_interval_ms;
    chosen.backlog_bytes = asked.backlog_bytes;
    chosen.file_mode = asked.file_mode;
    chosen.cpu_time = asked.cpu_time;
    chosen.on_message = asked.on_message;
    return instance().start(chosen);
  };
  s.stop = []() noexcept { instance().stop(); };
  s.flush = []() noexcept { instance().records().flush(); };
  s.dropped = []() noexcept { return instance().records().dropped(); };
  s.join = [](module_state& m, bool environment_counts) noexcept {
    instance().join(m, environment_counts);
  };
  s.leave = [](module_state& m) noexcept { instance().leave(m); };
  s.begin_task = [](record_tag tag) noexcept { instance().begin_task_of(tag); };
  s.end_task = []() noexcept { end_task(); };
  s.deliver = [](const char* line) noexcept {
    return instance().records().messages().deliver(line);
  };
  return s;
}

inline const services session::table_ = table();

inline const services* session::make() noexcept {
  if (instance_ != nullptr) return &table_;  // that other objects do not find
  // Memory of its own, never freed: scopes may end after every static object is gone.
  instance_ = new (map_memory(sizeof(session))) session;
  this_module_at_forks.before = before_fork;
  this_module_at_forks.after_in_parent = after_fork_in_parent;
  this_module_at_forks.after_in_child = after_fork_in_child;
  return &table_;
}

inline const services* make_services() noexcept {
  return session::make();
}
inline bool has_session() noexcept {
  return session::exists();
}

}  // namespace detail

/// Starts recording; see options. Records what ends from now on, on every thread, also of other
/// shared objects of this process and of children it forks. At most 5 ms: what processes that died
/// left, and takes longer to put into the logs, is put there meanwhile.
/// @return false, after saying why once, when the directory cannot be written; the program can go
/// on and just is not recorded. True also when this very recording runs already. Thread safety: all
/// of these functions.
inline bool start(const options& chosen = {}) noexcept {
  detail::start_request asked{};
  asked.log_file = chosen.log_file.data();
  asked.log_file_bytes = chosen.log_file.size();
  asked.when_full = chosen.when_full;
  asked.ring_records = chosen.ring_records;
  asked.drain_interval_ms = chosen.drain_interval_ms;
  asked.backlog_bytes = chosen.backlog_bytes;
  asked.file_mode = chosen.file_mode;
  asked.cpu_time = chosen.cpu_time;
  asked.on_message = chosen.on_message;
  return detail::join_session(false).start(asked);
}

/// Starts recording to `<log_file>_main_pid_<N>` and `<log_file>_worker_pid_<N>`.
inline bool start(std::string_view log_file) {
  options chosen;
  chosen.log_file = log_file;
  return start(chosen);
}

/// Writes every record that is complete by now to the logs. Not needed before exit.
inline void flush() noexcept {
  detail::join_session(true).flush();
}

/// Ends recording, everything written. Scopes still open are not recorded. start() may follow.
inline void stop() noexcept {
  detail::join_session(false).stop();
}

/// How many records this process has lost: dropped by choice (full_ring::drop), because neither
/// disk nor memory could take them, or for a batch number of 2^56 or more.
inline std::uint64_t dropped() noexcept {
  return detail::join_session(true).dropped();
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_SESSION_HPP
