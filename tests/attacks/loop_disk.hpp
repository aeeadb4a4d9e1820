// Provides file systems of all kinds, each in a file.
#ifndef LOTUS_TESTS_LOOP_DISK_HPP
#define LOTUS_TESTS_LOOP_DISK_HPP

#include <sys/mount.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "catch.hpp"

namespace support {

/// A file system in a file of `bytes`, if this machine allows one.
class loop_disk {
 public:
  loop_disk(const std::filesystem::path& at, const std::string& make, std::size_t bytes) : at_{at} {
    const std::string image = at.string() + ".image";
    std::ofstream{image}.close();
    std::filesystem::resize_file(image, bytes);
    std::filesystem::create_directory(at);
    mounted_ = run(make + " " + image) && run("mount -o loop " + image + " " + at.string());
    if (!mounted_) lotus_test::skip("cannot make and mount a file system: " + make);
  }
  ~loop_disk() {
    if (mounted_) umount2(at_.c_str(), MNT_DETACH);
  }
  loop_disk(const loop_disk&) = delete;
  loop_disk& operator=(const loop_disk&) = delete;
  bool mounted() const { return mounted_; }

  static bool run(const std::string& command) {
    return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
  }

 private:
  std::filesystem::path at_;
  bool mounted_ = false;
};

}  // namespace support

#endif  // LOTUS_TESTS_LOOP_DISK_HPP
