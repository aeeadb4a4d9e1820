// Provides a small file system that a test can fill.
#ifndef LOTUS_TESTS_SMALL_DISK_HPP
#define LOTUS_TESTS_SMALL_DISK_HPP

#include <sys/mount.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

#include "catch.hpp"

namespace support {

/// A file system of a given size, if this user has the right to create one.
class small_disk {
 public:
  small_disk(const std::filesystem::path& at, std::size_t bytes) : at_{at} {
    std::filesystem::create_directory(at);
    const std::string size = "size=" + std::to_string(bytes);
    mounted_ = mount("lotus_test", at.c_str(), "tmpfs", 0, size.c_str()) == 0;
  }
  ~small_disk() {
    if (mounted_) umount2(at_.c_str(), MNT_DETACH);
  }
  small_disk(const small_disk&) = delete;
  small_disk& operator=(const small_disk&) = delete;
  bool mounted() const {
    if (!mounted_) lotus_test::skip("cannot mount a tmpfs here");
    return mounted_;
  }

 private:
  std::filesystem::path at_;
  bool mounted_ = false;
};

/// Writes to the file `filler` until the disk is full.
inline void fill_disk(const std::filesystem::path& filler) {
  std::ofstream fill{filler, std::ios::binary};
  const std::string block(4096, 'x');
  while (fill.write(block.data(), 4096).flush()) {
  }
}

}  // namespace support

#endif  // LOTUS_TESTS_SMALL_DISK_HPP
