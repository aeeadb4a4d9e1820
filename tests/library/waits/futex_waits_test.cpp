// Tests which locks and holders are recognized in the arguments of futex(2), and that the kernel's
// files show these arguments.
#include "lotus/waits/futex_waits.hpp"

#include <linux/futex.h>

#include <cstdint>
#include <map>

#include "catch.hpp"
#include "lotus/waits/wait_sample.hpp"

namespace detail = lotus::detail;

namespace {

constexpr std::uint64_t lock_address = 0x7f0000000040;

/// A process whose threads have the ids 1 and 42.
struct fake_process {
  std::map<std::uint64_t, std::uint32_t> words{};  // by distance from the lock

  std::uint32_t word_at(std::uint64_t address) const {
    const auto found = words.find(address - lock_address);
    return found == words.end() ? 0 : found->second;
  }
  static bool has_thread(std::uint32_t tid) { return tid == 1 || tid == 42; }
};

detail::futex_wait wait_for_lock(const fake_process& process, int operation = FUTEX_WAIT,
                                 std::uint64_t word = 0, std::uint32_t value = 2) {
  detail::entered_call call{};
  call.arguments[0] = lock_address + word;
  call.arguments[1] = static_cast<std::uint64_t>(operation) | FUTEX_PRIVATE_FLAG;
  call.arguments[2] = value;
  return detail::wait_in_futex(call, process);
}

}  // namespace

TEST_CASE("a mutex has the holder that it names") {
  const detail::futex_wait of = wait_for_lock({{{0, 2}, {8, 42}, {12, 1}}});
  CHECK(of.reason == detail::wait_reason::lock);
  CHECK(of.address == lock_address);
  CHECK(of.holder == 42);
}

TEST_CASE("a mutex that a thread locks with a timeout has the holder that it names") {
  const detail::futex_wait of = wait_for_lock({{{0, 2}, {8, 42}, {12, 1}}}, FUTEX_WAIT_BITSET);
  CHECK(of.reason == detail::wait_reason::lock);
  CHECK(of.holder == 42);
}

TEST_CASE("a mutex with priority inheritance or robustness has the holder that its word names") {
  const fake_process process{{{0, FUTEX_WAITERS | 42}}};
  for (const int operation : {FUTEX_LOCK_PI, 13 /* FUTEX_LOCK_PI2 */}) {
    const detail::futex_wait of = wait_for_lock(process, operation, 0, 0);
    CHECK(of.reason == detail::wait_reason::lock);
    CHECK(of.holder == 42);
  }
  const detail::futex_wait robust = wait_for_lock(process, FUTEX_WAIT, 0, FUTEX_WAITERS | 42);
  CHECK(robust.reason == detail::wait_reason::lock);
  CHECK(robust.holder == 42);
}

TEST_CASE("readers and writers that wait for a reader-writer lock wait for the same lock") {
  // glibc's pthread_rwlock_t has the words for waits at 8 and 12, and the writer's thread at 24.
  for (const std::uint64_t word : {8U, 12U}) {
    const detail::futex_wait of = wait_for_lock({{{24, 42}}}, FUTEX_WAIT_BITSET, word, 3);
    CHECK(of.reason == detail::wait_reason::lock);
    CHECK(of.address == lock_address);
    CHECK(of.holder == 42);
  }
}

TEST_CASE("a lock of one word has no holder, whatever follows it") {
  // As the lock of malloc's arena, which is followed by flags and by 0 or 1.
  const detail::futex_wait of = wait_for_lock({{{0, 2}, {8, 1}}});
  CHECK(of.reason == detail::wait_reason::lock);
  CHECK(of.holder == 0);
}

TEST_CASE("the kernel's files show the calls of this program, unless an emulator runs it") {
  detail::call_files files;
  CHECK(detail::shows_own_calls(files));
  files.close_all();
}
