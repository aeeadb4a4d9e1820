// Collects the library's messages, which several threads may print at the same time.
#ifndef LOTUS_TESTS_MESSAGES_HPP
#define LOTUS_TESTS_MESSAGES_HPP

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace support {

/// The messages that the library has printed since the last clear(). All functions are thread-safe.
class collected_messages {
 public:
  /// Stores a message. This is a function for options::on_message.
  static void add(const char* message) {
    const std::lock_guard hold(lock());
    messages().emplace_back(message);
  }
  static void clear() {
    const std::lock_guard hold(lock());
    messages().clear();
  }
  static std::vector<std::string> all() {
    const std::lock_guard hold(lock());
    return messages();
  }
  /// Returns how many messages contain `text`.
  static std::size_t count(const std::string& text) {
    std::size_t n = 0;
    for (const auto& message : all()) n += message.find(text) != std::string::npos ? 1 : 0;
    return n;
  }

 private:
  static std::mutex& lock() {
    static std::mutex only;
    return only;
  }
  static std::vector<std::string>& messages() {
    static std::vector<std::string> only;
    return only;
  }
};

}  // namespace support

#endif  // LOTUS_TESTS_MESSAGES_HPP
