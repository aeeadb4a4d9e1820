// Copies the stack of a waiting thread, and keeps only the addresses in it.
//
// lotus-tool finds the calls in such a copy with the unwind tables of the program's files, so the
// library needs no unwinder. Return addresses and pointers into the stack itself are all that an
// unwinder reads. All other words are set to 0 in memory, because a stack also contains the
// program's data, such as passwords and texts, which must not get into a file. So a file of stacks
// may stay in the run's directory, and in snapshots and copies of the run. The file's mode is 0600
// nevertheless, because addresses help an attacker of the running process.
#ifndef LOTUS_WAITS_STACK_WORDS_HPP
#define LOTUS_WAITS_STACK_WORDS_HPP

#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "lotus/config.hpp"
#include "lotus/waits/code_ranges.hpp"
#include "lotus/waits/system_calls.hpp"

// A file of stacks (folder/hidden_files.hpp), which lotus-tool reads, has these lines. All numbers
// are hexadecimal, except <ns>, <tid> and <since>:
//   maps,                                   the following lines "code" replace all earlier ones
//   code,<begin>,<end>,<offset>,<first>,<path>   code of the file at <path>, from <offset> on, is
//                                           mapped from <begin> to <end>; the file's first byte
//                                           would be at <first>
//   build,<build id>                        the build id of the file of the line "code" before
//   stack,<id>,<pc>,<sp>,<bytes>,<words>    the stack of a thread from <sp> on, of which <bytes>
//                                           bytes were copied
//   seen,<ns since the epoch>,<tid>,<id>    the stack of the sample with this time and thread in
//                                           the file of waits
//   held,<ns since the epoch>,<tid>,<id, or 0>   the stack of the thread that holds the lock for
//                                           which the thread of this sample waits; 0: the holder
//                                           was running
//   moment,<ns since the epoch>             a snapshot is taken; the lines "state" that follow show
//                                           what each thread does at this time
//   state,<tid>,<reason>,<address>,<holder's tid>,<id, or 0>,<since>,<name>,<object>   reason,
//                                           address, holder and object as in a file of waits, or
//                                           the reason "running"; the time in ns since the epoch
//                                           since when the thread waits for a batch, or 0; and the
//                                           thread's name
// At the end, `lotus-tool run` adds the calls of each stack: a line "names," and the lines
// "module", "place", "text" and "frame" as in its files of threads, and then:
//   calls,<id>,<place>;<place>...           the calls of the stack, the innermost first
// <words> are the words of the stack that are addresses, each after a blank: "<n>:<address>", the
// address of code that is at <sp> + 8 <n>, or "<n>+<distance>", the address <sp> + <distance>.

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A copy of the top part of a thread's stack. Not thread-safe. Trivially destructible.
class stack_words {
 public:
  static constexpr std::size_t max_words = 1024;
  /// Space for what put() writes: for each word a blank, its number, a mark and an address.
  static constexpr std::size_t max_text = max_words * (1 + 3 + 1 + 16) + 80;

  /// Copies the stack of a thread of this process that waits in `call`. Reads through the kernel,
  /// because the thread may end meanwhile. The copy is empty if it cannot be made.
  void copy(const entered_call& call) noexcept {
    constexpr std::size_t page = 4096;
    pc_ = call.pc;
    sp_ = call.sp;
    count_ = 0;
    if (sp_ == 0 || sp_ % sizeof(std::uint64_t) != 0) return;
    // The kernel copies each element of `parts` completely or not at all, and the stack may end
    // before `words_` is full. So each page of the stack is an element of its own.
    constexpr std::size_t max_parts = sizeof(words_) / page + 1;
    iovec parts[max_parts] = {};
    std::size_t used = 0;
    for (std::uint64_t at = sp_; at < sp_ + sizeof(words_) && used < max_parts; ++used) {
      const std::uint64_t left = sp_ + sizeof(words_) - at;
      const std::uint64_t in_page = page - at % page;
      // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that the kernel reported
      parts[used] = {reinterpret_cast<void*>(at), in_page < left ? in_page : left};
      at += parts[used].iov_len;
    }
    const iovec to{words_, sizeof(words_)};
    const ssize_t got = process_vm_readv(getpid(), &to, 1, parts, used, 0);
    if (got > 0) count_ = static_cast<std::size_t>(got) / sizeof(std::uint64_t);
  }

  bool empty() const noexcept { return count_ == 0; }
  std::uint64_t pc() const noexcept { return pc_; }

  /// Sets all words to 0 that are neither addresses of code nor addresses within the copy. Returns
  /// a hash of the words that remain.
  std::uint64_t keep_addresses(const code_ranges& code) noexcept {
    std::uint64_t hash = hash_with(hash_with(count_, pc_), sp_);
    for (std::size_t i = 0; i < count_; ++i) {
      std::uint64_t& word = words_[i];
#if defined(__aarch64__)
      // A return address may be signed in its upper bits (pointer authentication).
      constexpr std::uint64_t address_bits = (std::uint64_t{1} << 48) - 1;
      if (code.contains(word & address_bits)) word &= address_bits;
#endif
      if (!is_in_copy(word) && !code.contains(word)) {
        word = 0;
      } else {
        hash = hash_with(hash_with(hash, i), word);
      }
    }
    return hash;
  }

  /// Writes the line "stack", at most max_text bytes. Must be called after keep_addresses().
  /// Returns the length of the line.
  std::size_t put(std::uint32_t id, char* text) const noexcept {
    char* to = text;
    for (const char c : {'s', 't', 'a', 'c', 'k', ','}) *to++ = c;
    for (const std::uint64_t number : {std::uint64_t{id}, pc_, sp_, std::uint64_t{bytes()}}) {
      to = put_hexadecimal(number, to);
      *to++ = ',';
    }
    for (std::size_t i = 0; i < count_; ++i) {
      if (words_[i] == 0) continue;
      *to++ = ' ';
      to = put_hexadecimal(i, to);
      const bool in_copy = is_in_copy(words_[i]);
      *to++ = in_copy ? '+' : ':';
      to = put_hexadecimal(in_copy ? words_[i] - sp_ : words_[i], to);
    }
    *to++ = '\n';
    return static_cast<std::size_t>(to - text);
  }

 private:
  std::size_t bytes() const noexcept {
    return count_ * sizeof(std::uint64_t);
  }

  /// Whether the word is an address in the copied part of the stack, or the address at which that
  /// part ends.
  bool is_in_copy(std::uint64_t word) const noexcept {
    return word >= sp_ && word - sp_ <= bytes();
  }

  static char* put_hexadecimal(std::uint64_t number, char* to) noexcept {
    int digits = 1;
    while (digits < 16 && number >> (4 * digits) != 0) ++digits;
    while (digits-- > 0) *to++ = "0123456789abcdef"[number >> (4 * digits) & 15U];
    return to;
  }

  std::uint64_t pc_ = 0;
  std::uint64_t sp_ = 0;
  std::size_t count_ = 0;  ///< number of copied words
  std::uint64_t words_[max_words] = {};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_STACK_WORDS_HPP
