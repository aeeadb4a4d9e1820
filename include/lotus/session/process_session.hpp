// Provides the one session of a process, which starts and stops recording and handles forks.
#ifndef LOTUS_SESSION_PROCESS_SESSION_HPP
#define LOTUS_SESSION_PROCESS_SESSION_HPP

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>

#include "lotus/base/environment.hpp"
#include "lotus/base/fork.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/base/own_process.hpp"
#include "lotus/collectors/annotate.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/directory.hpp"
#include "lotus/format/line.hpp"
#include "lotus/format/record_kinds.hpp"
#include "lotus/heap/heap_account.hpp"
#include "lotus/options.hpp"
#include "lotus/record/environment_report.hpp"
#include "lotus/record/hub.hpp"
#include "lotus/record/join.hpp"
#include "lotus/record/message.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/shared_objects.hpp"
#include "lotus/session/step_recording.hpp"
#include "lotus/store/recorder.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The session of this process, created at first use and never destroyed. Lock order: control_ is
/// locked before any lock of the recorder. While the lock of modules_ is held, no other lock is
/// taken.
class LOTUS_DETAIL_PER_MODULE session {
 public:
  static session& instance() noexcept { return *instance_; }
  static bool exists() noexcept { return instance_ != nullptr; }
  /// Returns the session, or null in a child process that was created without fork handlers (_Fork,
  /// clone). Such a child has a copy of its parent's session: it shares the parent's ring file, and
  /// copied locks may stay locked forever.
  static session* of_this_process() noexcept {
    session* const s = instance_;
    return LOTUS_DETAIL_LIKELY(s->process_.is_this() || this_thread_forks) ? s : nullptr;
  }
  /// Returns of_this_process(), for functions that record something. If the result is null, also
  /// reports once that nothing is recorded.
  static session* to_record() noexcept {
    session* const s = of_this_process();
    if (s == nullptr) instance().report_foreign_process();
    return s;
  }
  /// Creates the session, unless this shared object has already created one. (A second call comes
  /// only if shared objects cannot find each other's session.)
  /// @param table  the functions through which shared objects call the session; must stay valid
  /// until the process exits.
  LOTUS_DETAIL_COLD static void make(const services& table) noexcept {
    if (instance_ != nullptr) return;
    // The session is never destroyed, because scopes may end after the destructors of static
    // objects. Its memory is static, because the process may be allowed no more memory.
    alignas(session) static unsigned char memory[sizeof(session)];
    instance_ = new (memory) session{table};
    instance_->process_.claim();
    this_module_at_forks.before = before_fork;
    this_module_at_forks.after_in_parent = after_fork_in_parent;
    this_module_at_forks.after_in_child = after_fork_in_child;
    this_module_at_forks.in_own_process = []() noexcept { return instance_->process_.is_this(); };
  }

  recorder& records() noexcept { return recorder_; }
  /// Reserves `async_ids_at_once` consecutive ids for asynchronous operations, which are unique
  /// within this process, and returns the first.
  std::uint32_t take_async_ids() noexcept { return async_ids_.fetch_add(async_ids_at_once); }

  LOTUS_DETAIL_COLD void join(module_state& m, bool environment_counts) noexcept {
    choose_annotation();  // called before any lock is taken, because it may load a library
    heap_.find();
    const signals_blocked quiet;
    // pin_module_of() needs the dynamic loader's lock. The thread that holds that lock may be
    // running a static constructor that records, so no lock of the session may be held here.
    if (!pinned_.exchange(true)) pin_module_of(&instance_);
    if (this_thread_forks) return;  // the next scope will join the session
    const locked control{control_};
    if (environment_counts && !environment_read_) start_as_environment_says();
    modules_.tell(m, table_, recorder_.clock().hardware(), mode());
    // If another thread started recording before heap_.find() had found liblotus_memory.so, that
    // recording does not count allocations yet.
    if (recorder_.is_on()) heap_.begin_where_missed();
    if (annotation_wanted() || heap_.on()) modules_.set_mode(mode());
  }

  LOTUS_DETAIL_COLD void leave(module_state& m) noexcept {
    const signals_blocked quiet;
    if (&m != &this_module) return modules_.remove(m);
    // Here `m` belongs to the shared object that contains the session's code. That object is never
    // unloaded, so leave() is called for it only when the process exits.
    const locked control{control_};
    if (recorder_.is_on()) end_heap();
    recorder_.close_at_exit();
  }

  bool start(const options& chosen) noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    environment_read_ = true;
    if (is_recording_on_request()) return already_recording(chosen);
    end_current_recording();
    return begin(chosen);
  }

  /// @param steps  selects the recorded steps; the session keeps the listener of `steps` alive.
  bool start_steps(const options& chosen, const schedule& steps) noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    environment_read_ = true;
    if (is_recording_on_request()) {
      already_recording(chosen);
      return false;
    }
    end_current_recording();
    if (!steps_.start(chosen, steps)) return false;
    return !steps_.active() || begin(steps_.of_active());
  }

  LOTUS_DETAIL_COLD bool step(step_notice& notice) noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    if (!steps_.running()) return false;
    const step_window before = steps_.window();
    const bool recorded = steps_.active() && recorder_.is_on();
    const bool notified = recorded && steps_.fill(notice);
    steps_.advance();
    if (steps_.window() == before) return false;
    end();
    if (steps_.active()) begin(steps_.of_active());
    return notified;
  }

  bool stop(step_notice& notice) noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    environment_read_ = true;
    const bool notified = steps_.active() && recorder_.is_on() && steps_.fill(notice);
    end();
    steps_.stop();
    return notified;
  }

  void annotate_torch(const annotation_calls& calls) noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    torch_annotation.store(&calls, std::memory_order_release);
    if (annotation_wanted()) modules_.set_mode(mode());
  }

  /// Returns the name in a tag, or the name of the tag's kind if tags of that kind contain no name.
  std::string_view name_in(record_tag tag) const noexcept {
    const record_kind& kind = kind_of(tag);
    return has_name(kind) ? recorder_.name(name_of(kind, tag)).raw() : kind.task();
  }

  void begin_task_of(record_tag tag) noexcept {
    const record_kind& kind = kind_of(tag);
    if (!has_name(kind)) {
      std::optional<std::uint64_t> batch;
      if (is_of_batch(kind) && tag.value() != unknown_batch) batch = tag.value();
      return begin_task(kind.task(), kind_handles_[static_cast<std::uint8_t>(kind.kind)], batch);
    }
    const name_entry& name = recorder_.name(name_of(kind, tag));
    if (kind.kind == event_kind::range) return begin_range(name.raw(), tag);
    const auto number = static_cast<std::uint32_t>(tag.value());
    if (kind.kind == event_kind::async_segment) {
      return begin_async_task(name.raw(), name.task_handle, number);
    }
    const bool numbered = kind.kind == event_kind::stage && number != number_not_in_tag;
    begin_task(name.raw(), name.task_handle,
               numbered ? std::optional<std::uint64_t>{number} : std::nullopt);
  }
  static void end_task_of(record_tag tag) noexcept {
    if (tag.kind() != event_kind::async_segment) return end_task();
    end_async_task(static_cast<std::uint32_t>(tag.value()));
  }

  /// Whether allocations are attributed to records with this tag. Allocations in ranges and
  /// aggregated scopes are attributed to the enclosing operation.
  bool has_heap(record_tag tag) const noexcept {
    return heap_.on() && recorder_.is_on() && tag.kind() != event_kind::range &&
           tag.kind() != event_kind::aggregated;
  }
  void begin_heap_of(record_tag tag) noexcept {
    if (!has_heap(tag)) return;
    heap_.begin(heap_name(tag), tag.kind() == event_kind::batch_preprocessed);
  }
  void end_heap_of(std::uint64_t begin_ticks, record_tag begun_as, record_tag tag) noexcept {
    if (!has_heap(tag)) return;
    heap_.end(begin_ticks, heap_name(begun_as), heap_name(tag));
  }

 private:
  recording mode() const noexcept {
    if (annotation_wanted()) return recording::annotated;
    if (!recorder_.is_on()) return recording::off;
    return heap_.on() ? recording::annotated : recording::on;
  }

  std::uint32_t heap_name(record_tag tag) noexcept {
    return heap_.name(tag, [this](std::string_view name) { return recorder_.intern(name); });
  }

  void end_heap() noexcept {
    if (heap_.on()) heap_.end_recording(heap_name(no_unit));
  }

  /// Begins a lotus::range on another profiler's timeline, where the range's number is part of its
  /// name.
  static void begin_range(std::string_view name, record_tag tag) noexcept {
    const auto number = static_cast<std::uint32_t>(tag.value());
    char text[256 + 24];
    const std::size_t length = name.size() < 256 ? name.size() : 256;
    std::memcpy(text, name.data(), length);
    const char* const end =
        number == number_not_in_tag ? text + length : put_number_slow(text + length, number);
    std::atomic<void*> handle{nullptr};
    begin_task({text, static_cast<std::size_t>(end - text)}, handle);
  }

  // --- The caller of the following functions holds control_.

  void start_as_environment_says() noexcept {
    environment_read_ = true;
    const char* const log_file = environment_text(variable::log_file);
    if (log_file == nullptr) return;
    options chosen;
    chosen.log_file = log_file;
    started_by_environment_ = begin(chosen);
  }

  /// Whether the program started the current recording by start() without a schedule. Such a
  /// recording may be ended only by stop().
  bool is_recording_on_request() const noexcept {
    return recorder_.is_on() && !started_by_environment_ && !steps_.running();
  }

  /// Ends the current recording, so that another start() can begin a new one.
  void end_current_recording() noexcept {
    end();
    steps_.stop();
    started_by_environment_ = false;
  }

  LOTUS_DETAIL_COLD bool already_recording(const options& chosen) noexcept {
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

  /// Reports that the variable is not used, if it is set to something other than what the program
  /// has chosen.
  static void say_if_unused(variable which, std::uint64_t chosen, const char* member) noexcept {
    std::uint64_t number = 0;
    if (!environment_number(which, number, say_of_variable) || number == chosen) return;
    say("%s=%llu is not used, because the program sets options::%s to %llu", row_of(which).name,
        static_cast<unsigned long long>(number), member, static_cast<unsigned long long>(chosen));
  }

  /// Uses the values of environment variables for those settings that the program has not chosen,
  /// and reports settings that contradict each other.
  static void resolve(options& chosen) noexcept {
    if (chosen.keep_bytes == 0) {
      chosen.keep_bytes = number_setting(variable::keep_bytes);
    } else {
      say_if_unused(variable::keep_bytes, chosen.keep_bytes, "keep_bytes");
    }
    if (chosen.wait_samples_per_s < 0) {
      chosen.wait_samples_per_s =
          static_cast<std::int32_t>(number_setting(variable::wait_samples_per_s));
    } else {
      say_if_unused(variable::wait_samples_per_s,
                    static_cast<std::uint64_t>(chosen.wait_samples_per_s), "wait_samples_per_s");
    }
    constexpr std::size_t compact = 1;  // index of "compact" in the variable's list of words
    const bool kept = chosen.keep_bytes != 0 || chosen.keep_ms != 0;
    if (environment_word(variable::format, 0, say_of_variable) == compact) {
      chosen.format = log_format::compact;
    } else if (chosen.format == log_format::automatic) {
      const bool is_text = !kept || environment_text(variable::format) != nullptr;
      chosen.format = is_text ? log_format::text : log_format::compact;
    } else if (chosen.format == log_format::compact &&
               environment_text(variable::format) != nullptr) {
      say("%s=text is not used, because the program sets options::format to compact",
          row_of(variable::format).name);
    }
    if (chosen.keep_ms != 0 && chosen.keep_ms < chosen.drain_interval_ms) {
      say("options::keep_ms is %u, less than drain_interval_ms, which is %u: records may be "
          "deleted as soon as they are written",
          chosen.keep_ms, chosen.drain_interval_ms);
    }
    keep_as_before(chosen);
  }

  /// Applies the limits that deprecated members of options set. Of two limits, the smaller applies.
  static void keep_as_before(options& chosen) noexcept {
    const std::uint64_t bytes = chosen.max_bytes.value;
    const std::uint64_t ms = std::uint64_t{chosen.max_age_s.value} * 1000;
    if (bytes != 0 && (chosen.keep_bytes == 0 || bytes < chosen.keep_bytes)) {
      chosen.keep_bytes = bytes;
    }
    if (ms != 0 && (chosen.keep_ms == 0 || ms < chosen.keep_ms)) {
      chosen.keep_ms = static_cast<std::uint32_t>(ms < UINT32_MAX ? ms : UINT32_MAX);
    }
  }

  LOTUS_DETAIL_COLD bool begin(options chosen) noexcept {
    recorder_.send_messages_to(chosen.on_message);
    resolve(chosen);
    if (!recorder_.open(chosen)) return false;
    modules_.set_mode(mode());
    heap_.begin_recording();
    return true;
  }

  LOTUS_DETAIL_COLD void end() noexcept {
    if (!recorder_.is_on()) return;
    end_heap();
    recorder_.close();
    modules_.set_mode(mode());
  }

  // --- Fork handlers, which leave a consistent session in the parent and in the child.

  LOTUS_DETAIL_COLD static void before_fork() noexcept {
    session& s = instance();
    s.control_.lock();
    s.recorder_.before_fork();
    s.modules_.fork_lock().lock();
  }

  static void after_fork_in_parent() noexcept { instance().unlock_after_fork(); }

  LOTUS_DETAIL_COLD static void after_fork_in_child() noexcept {
    instance().process_.claim();
    instance().recorder_.become_child();
    instance().heap_.become_child();
    instance().unlock_after_fork();
  }

  void unlock_after_fork() noexcept {
    modules_.fork_lock().unlock();
    recorder_.after_fork();
    control_.unlock();
  }

  explicit session(const services& table) noexcept : table_{table} {}

  /// Reports once, on stderr, that this process cannot record. Reports nothing if the program has a
  /// message handler: the handler might wait forever for a lock that was locked when the process
  /// was copied.
  LOTUS_DETAIL_COLD void report_foreign_process() noexcept {
    if (foreign_reported_.exchange(true)) return;
    say("this process was created without fork handlers (by _Fork or clone), so nothing is "
        "recorded in it: use fork()");
  }

  /// The tag under whose name the state of the heap is recorded if no operation has begun yet.
  static constexpr record_tag no_unit{event_kind::batch_preprocessed, 0};

  static inline session* instance_ = nullptr;

  const services& table_;
  own_process process_;
  std::atomic<bool> foreign_reported_{false};
  mutex control_;
  std::atomic<bool> pinned_{false};
  bool environment_read_ = false;
  bool started_by_environment_ = false;
  /// The handle of each record kind's name in another profiler's annotation interface.
  std::atomic<void*> kind_handles_[record_kinds.size()]{};
  std::atomic<std::uint32_t> async_ids_{0};
  module_list modules_;
  recorder recorder_;
  heap_account heap_;
  step_recording steps_;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SESSION_PROCESS_SESSION_HPP
