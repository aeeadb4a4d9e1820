// Writes the stacks of waiting threads to a process's file of stacks.
#ifndef LOTUS_WAITS_WAIT_STACKS_HPP
#define LOTUS_WAITS_WAIT_STACKS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "lotus/base/build_id.hpp"
#include "lotus/base/clock.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/waits/code_ranges.hpp"
#include "lotus/waits/exponential_pause.hpp"
#include "lotus/waits/stack_words.hpp"
#include "lotus/waits/wait_file.hpp"
#include "lotus/waits/wait_objects.hpp"
#include "lotus/waits/wait_reasons.hpp"
#include "lotus/waits/wait_sample.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The stacks of a recording's samples. Each different stack is written once. The number of stacks
/// per second and the size of the file are limited. Not thread-safe. Trivially destructible.
class wait_stacks {
 public:
  /// Begins with a new file, at the start of a recording or in a forked child.
  void begin() noexcept {
    file_.close();
    forget();
    failed_ = false;
    read_code_ns_ = 0;
    began_ns_ = static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
    samples_ = 0;
    credit_ = max_credit;
    credited_ns_ = 0;
  }

  void close() noexcept { file_.close(); }

  /// Returns the buffer for the stack of the next sample; null if the stack of that sample is not
  /// wanted. The first samples all have stacks, so that short recordings have some of each wait.
  stack_words* next(random_bits& bits) noexcept {
    constexpr std::uint32_t all_until = 64;
    constexpr std::uint32_t later_one_of = 4;
    if (samples_ < all_until) ++samples_;
    return samples_ < all_until || bits.below(later_one_of) == 0 ? &stack_ : nullptr;
  }

  /// Writes which stack belongs to a sample. If the file does not contain the copied stack yet,
  /// writes the stack itself first.
  /// @param time_ns, tid  time and thread of the sample in the file of waits.
  /// @param folder  directory and settings of the file of waits.
  void write(std::int64_t time_ns, std::uint32_t tid, const wait_folder& folder) noexcept {
    if (!prepare(folder)) return;
    const std::uint32_t id = number(false);
    if (id == 0) return;
    lines_.add("seen,%lld,%u,%x\n", static_cast<long long>(time_ns), tid, id);
    flush();
  }

  /// Writes the stack of the holder of a lock: the thread that holds the lock for which the sampled
  /// thread `tid` waits.
  /// @param time_ns, tid  as in write(), which must have been called before.
  /// @param waits  whether the holder waits too; then the caller has copied its stack to stack().
  /// Otherwise the holder runs, so its stack is unknown, and 0 is written instead of a stack.
  void write_holder(std::int64_t time_ns, std::uint32_t tid, bool waits,
                    const wait_folder& folder) noexcept {
    if (!prepare(folder)) return;
    const std::uint32_t id = waits ? number(false) : 0;
    if (waits && id == 0) return;
    lines_.add("held,%lld,%u,%x\n", static_cast<long long>(time_ns), tid, id);
    flush();
  }

  /// Writes the line "moment": the calls of write_state() that follow record what each thread does
  /// at this time.
  void write_moment(std::int64_t time_ns, const wait_folder& folder) noexcept {
    if (!prepare(folder)) return;
    lines_.add("moment,%lld\n", static_cast<long long>(time_ns));
    flush();
  }

  /// Returns the buffer to which the caller must copy a waiting thread's stack before it calls
  /// write_state().
  stack_words& stack() noexcept { return stack_; }

  /// Writes what a thread does at this moment.
  /// @param wait  what the thread waits for; null: the thread is running. If it waits, the caller
  /// has copied its stack to stack().
  /// @param since_ns  since when the thread waits for a batch, in ns since the epoch; 0: it does
  /// not wait for a batch.
  void write_state(std::uint32_t tid, const thread_wait* wait, std::int64_t since_ns,
                   const char* name, const wait_folder& folder) noexcept {
    if (!prepare(folder)) return;
    const std::uint32_t id = wait == nullptr ? 0 : number(true);
    const auto add = [&] {
      const thread_wait none;
      const thread_wait& of = wait == nullptr ? none : *wait;
      return lines_.add(
          "state,%u,%s,%llx,%u,%x,%lld,%s,%.*s\n", tid,
          wait == nullptr ? "running" : wait_reason_words[static_cast<std::size_t>(of.reason)],
          static_cast<unsigned long long>(of.address), of.holder, id,
          static_cast<long long>(since_ns), name, static_cast<int>(of.text_bytes), of.text);
    };
    if (!add()) {
      flush();
      add();
    }
    flush();
  }

 private:
  static constexpr std::size_t capacity = 1024;
  static constexpr std::uint64_t second_ns = 1'000'000'000;
  static constexpr std::uint32_t max_credit = 256;
  static constexpr std::uint64_t credit_per_s = 32;
  static constexpr std::uint64_t max_bytes = std::uint64_t{4} << 20;
  static constexpr mode_t mode = 0600;

  struct known {
    std::uint64_t hash = 0;  ///< 0: free
    std::uint32_t id = 0;
  };

  static std::size_t place_of(std::uint64_t hash) noexcept {
    return static_cast<std::size_t>(hash >> 1) % capacity;  // the lowest bit is always set
  }

  /// Opens or creates the file of stacks if lines cannot be appended to it now. Returns false if
  /// that fails, or if writing failed less than a second ago.
  bool prepare(const wait_folder& folder) noexcept {
    lines_.bytes = 0;
    now_ns_ = static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
    if (failed_ && now_ns_ < failed_ns_ + second_ns) return false;
    failed_ = false;
    if (file_.ready(folder_.max_bytes)) return true;
    folder_ = folder;
    folder_.start = stacks_file_start;
    folder_.mode = mode & folder.mode;
    folder_.max_bytes = folder.max_bytes == 0 ? max_bytes : std::min(folder.max_bytes, max_bytes);
    forget();
    return file_.begin(folder_);
  }

  /// Returns the number by which the file of stacks identifies the copied stack. If the file does
  /// not contain the stack yet, also adds the stack's line. Returns 0 if no stack was copied, or if
  /// the stack cannot be written now.
  /// @param always  whether to write a new stack even if there were many recently.
  std::uint32_t number(bool always) noexcept {
    if (stack_.empty()) return 0;
    find_code();
    const std::uint64_t hash = stack_.keep_addresses(code_) | 1;
    std::size_t at = place_of(hash);
    while (places_[at].hash != 0 && places_[at].hash != hash) at = (at + 1) % capacity;
    if (places_[at].hash != 0) return places_[at].id;
    if (!take_credit() && !always) return 0;
    if (count_ >= capacity / 2) {
      forget_stacks();
      at = place_of(hash);
    }
    if (lines_.bytes + stack_words::max_text + 64 > sizeof(lines_.text)) flush();
    if (failed_) return 0;
    ++count_;
    places_[at] = {hash, ++last_id_};
    lines_.bytes += stack_.put(last_id_, lines_.text + lines_.bytes);
    return last_id_;
  }

  /// Returns whether a new stack may be written now. Allows bursts of new stacks, but limits their
  /// average number per second.
  bool take_credit() noexcept {
    const std::uint64_t earned =
        std::min<std::uint64_t>((now_ns_ - credited_ns_) * credit_per_s / second_ns, max_credit);
    if (earned > 0) {
      credit_ = std::min(max_credit, credit_ + static_cast<std::uint32_t>(earned));
      credited_ns_ = now_ns_;
    }
    if (credit_ == 0) return false;
    --credit_;
    return true;
  }

  /// Reads again where code is mapped, if the last reading is long enough ago. If the mappings
  /// differ from those in the file, adds lines about them.
  void find_code() noexcept {
    // The mappings are read less often later, because programs load most libraries when they begin.
    // Reading very many mappings takes long. So the pause before the next reading is at least 4000
    // times as long as the last reading took, or 500 times if the thread is in unknown code.
    const bool is_unknown = !code_.contains(stack_.pc());
    const std::uint64_t usual_ns =
        std::min(std::max((now_ns_ - began_ns_) / 4, second_ns / 10), 10 * second_ns);
    const std::uint64_t pause_ns = is_unknown ? std::max(second_ns / 10, 500 * read_cost_ns_)
                                              : std::max(usual_ns, 4000 * read_cost_ns_);
    if (now_ns_ >= read_code_ns_ + pause_ns) {
      if (code_.read()) code_written_ = false;
      read_cost_ns_ = static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC)) - now_ns_;
      read_code_ns_ = now_ns_;
    }
    if (code_written_) return;
    code_written_ = true;
    forget_stacks();
    lines_.add("%s\n", "maps,");
    for_each_code([this](const code_part& part) {
      const auto add = [&] {
        return lines_.add("code,%llx,%llx,%llx,%llx,%.*s\n",
                          static_cast<unsigned long long>(part.begin),
                          static_cast<unsigned long long>(part.end),
                          static_cast<unsigned long long>(part.file_offset),
                          static_cast<unsigned long long>(part.file_begin),
                          static_cast<int>(part.path.size()), part.path.data());
      };
      if (!add()) {
        flush();
        add();
      }
      const build_id id = mapped_build_id(part.file_begin);
      if (*id.digits != '\0') lines_.add("build,%s\n", static_cast<const char*>(id.digits));
    });
  }

  /// Passes the lines to the kernel.
  void flush() noexcept {
    failed_ = !file_.ready(0) || !file_.append(lines_.text, lines_.bytes);
    lines_.bytes = 0;
    if (!failed_) return;
    failed_ns_ = now_ns_;
    forget();  // so that lost lines are written again when they are next needed
  }

  void forget_stacks() noexcept {
    if (count_ > 0) std::memset(static_cast<void*>(places_), 0, sizeof(places_));
    count_ = 0;
  }

  void forget() noexcept {
    forget_stacks();
    code_written_ = false;
  }

  wait_folder folder_;
  wait_file file_;
  bool failed_ = false;  ///< whether the last lines could not be written
  std::uint64_t failed_ns_ = 0;
  std::uint64_t began_ns_ = 0;  ///< when begin() was called (CLOCK_MONOTONIC)
  std::uint64_t now_ns_ = 0;    ///< time of the lines that are being written (CLOCK_MONOTONIC)
  stack_words stack_;
  code_ranges code_;
  bool code_written_ = false;
  std::uint64_t read_code_ns_ = 0;  ///< when code_ was read (CLOCK_MONOTONIC)
  std::uint64_t read_cost_ns_ = 0;  ///< how long that took
  known places_[capacity] = {};
  std::size_t count_ = 0;
  std::uint32_t last_id_ = 0;
  std::uint32_t samples_ = 0;
  std::uint32_t credit_ = max_credit;  ///< how many new stacks may be written now
  std::uint64_t credited_ns_ = 0;
  text_lines<stack_words::max_text + 8192> lines_;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_WAIT_STACKS_HPP
