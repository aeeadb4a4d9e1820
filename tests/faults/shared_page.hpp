// Provides counters that remain when the process that increments them is killed, so that a test can
// compare the logs of this process with them.
#ifndef LOTUS_TESTS_SHARED_PAGE_HPP
#define LOTUS_TESTS_SHARED_PAGE_HPP

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace support {

/// An array of counters in a file that several processes have mapped.
class shared_page {
 public:
  static constexpr std::size_t slots = 8192;

  explicit shared_page(const std::string& path) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(std::atomic<std::uint64_t>) * slots) != 0) {
      throw std::runtime_error("no shared page at " + path);
    }
    void* memory = mmap(nullptr, sizeof(std::atomic<std::uint64_t>) * slots, PROT_READ | PROT_WRITE,
                        MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED) throw std::runtime_error("cannot map " + path);
    counters_ = static_cast<std::atomic<std::uint64_t>*>(memory);
  }
  ~shared_page() { munmap(counters_, sizeof(std::atomic<std::uint64_t>) * slots); }
  shared_page(const shared_page&) = delete;
  shared_page& operator=(const shared_page&) = delete;

  std::atomic<std::uint64_t>& operator[](std::size_t i) { return counters_[i]; }

 private:
  std::atomic<std::uint64_t>* counters_;
};

}  // namespace support

#endif  // LOTUS_TESTS_SHARED_PAGE_HPP
