// Controls callgrind through its client requests. The requests are defined here, so that no header
// of valgrind is needed and all files of a program use the same definitions.
#ifndef LOTUS_COLLECTORS_CALLGRIND_HPP
#define LOTUS_COLLECTORS_CALLGRIND_HPP

#include <cstdint>

#include "lotus/collectors/backend.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/record/message.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Numbers of valgrind's requests: the first one is handled by valgrind's core, the others by
/// callgrind (tool "CT").
enum class valgrind_request : std::uint64_t {
  running_on_valgrind = 0x1001,
  dump_stats_at = 0x43540003,
  start_instrumentation = 0x43540004,
  stop_instrumentation = 0x43540005,
};

/// Sends a request to valgrind. If the program does not run under valgrind, the instructions have
/// no effect, the answer is 0, and the call takes about 2 ns (valgrind manual, "The Client Request
/// mechanism").
inline std::uint64_t ask_valgrind(valgrind_request request, std::uint64_t argument = 0) noexcept {
  volatile std::uint64_t block[6] = {static_cast<std::uint64_t>(request), argument, 0, 0, 0, 0};
  std::uint64_t answer = 0;
#if defined(__x86_64__)
  __asm__ volatile(
      "rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
      "xchgq %%rbx, %%rbx"
      : "+d"(answer)
      : "a"(&block[0])
      : "cc", "memory");
#else
  register std::uint64_t in_out __asm__("x3") = 0;
  register const volatile std::uint64_t* in __asm__("x4") = &block[0];
  __asm__ volatile(
      "ror x12, x12, #3\n\tror x12, x12, #13\n\tror x12, x12, #51\n\tror x12, x12, #61\n\t"
      "orr x10, x10, x10"
      : "+r"(in_out)
      : "r"(in)
      : "cc", "memory");
  answer = in_out;
#endif
  return answer;
}

inline bool callgrind_is_here() noexcept {
  return ask_valgrind(valgrind_request::running_on_valgrind) != 0;
}

/// Returns the functions that control callgrind. The program must run under callgrind with the
/// option --instr-atstart=no. callgrind writes a dump at the end of each region.
inline const collector_backend* callgrind_backend() noexcept {
  static constexpr collector_backend table = [] {
    collector_backend b;
    b.counts_instructions = true;
    b.begin = []() noexcept {
      if (callgrind_is_here()) return true;
      say("LOTUS_COLLECTOR=callgrind, but valgrind does not run this program");
      return false;
    };
    b.resume = []() noexcept {
      return ask_valgrind(valgrind_request::start_instrumentation), true;
    };
    b.pause = []() noexcept { return ask_valgrind(valgrind_request::stop_instrumentation), true; };
    b.detach = []() noexcept { ask_valgrind(valgrind_request::stop_instrumentation); };
    b.interval_ns = []() noexcept { return std::uint64_t{0}; };
    b.region = [](const char* name, std::uint64_t, std::uint64_t) noexcept {
      ask_valgrind(valgrind_request::dump_stats_at, reinterpret_cast<std::uintptr_t>(name));
    };
    return b;
  }();
  return &table;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_CALLGRIND_HPP
