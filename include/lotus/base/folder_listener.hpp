// Provides folder_listener, a callback that receives the path of a folder, without <functional>.
#ifndef LOTUS_BASE_FOLDER_LISTENER_HPP
#define LOTUS_BASE_FOLDER_LISTENER_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The part of a callback that shared objects pass to each other, so its layout must be the same in
/// all of them. The code of the function belongs to the shared object that created the callback.
struct kept_function {
  void (*call)(kept_function&, const char* folder);
  void (*destroy)(kept_function&) noexcept;
  std::atomic<std::uint32_t> owners{1};
  /// 1 after keep() was called, otherwise 0. The type has four bytes, because every supported
  /// processor can exchange them atomically.
  std::atomic<std::uint32_t> kept{0};
  kept_function* before = nullptr;  ///< the callback on which keep() was called before this one
};

/// The newest callback that this shared object keeps forever. Each callback points to the previous
/// one, so all of them stay reachable.
LOTUS_DETAIL_PER_MODULE inline std::atomic<kept_function*> newest_kept_function{nullptr};

/// A callback that may be empty. Its function receives the path of a folder as a const
/// std::string&, a std::string_view or a const char*. Copies of a folder_listener share the
/// function. Thread safety is that of std::shared_ptr.
class folder_listener {
 public:
  folder_listener() noexcept = default;
  folder_listener(std::nullptr_t) noexcept {}
  template <class Function,
            class = std::enable_if_t<std::is_invocable_v<std::decay_t<Function>&, const char*>>>
  folder_listener(Function&& function) {
    using held_function = held<std::decay_t<Function>>;
    if (is_null(function)) return;
    function_ = new held_function{std::forward<Function>(function)};
  }
  folder_listener(const folder_listener& other) noexcept : function_{other.function_} {
    if (function_ != nullptr) function_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  folder_listener& operator=(folder_listener other) noexcept {
    std::swap(function_, other.function_);
    return *this;
  }
  ~folder_listener() {
    if (function_ == nullptr) return;
    if (function_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      function_->destroy(*function_);
    }
  }

  explicit operator bool() const noexcept { return function_ != nullptr; }
  void operator()(const char* folder) const { function_->call(*function_, folder); }

  /// Keeps the function in memory forever, because another thread may be about to call it when its
  /// last owner is destroyed or the shared object with its code is unloaded.
  void keep() const noexcept {
    if (function_ == nullptr || function_->kept.exchange(1) != 0) return;
    function_->owners.fetch_add(1, std::memory_order_relaxed);
    function_->before = newest_kept_function.load();
    while (!newest_kept_function.compare_exchange_weak(function_->before, function_)) {
    }
  }

 private:
  template <class Function>
  struct held : kept_function {
    template <class From>
    // clang-tidy warns that this constructor could replace the copy constructor. It cannot, because
    // it is called only with functions.
    // NOLINTNEXTLINE(bugprone-forwarding-reference-overload)
    explicit held(From&& from)
        : kept_function{call_held, destroy_held}, function{std::forward<From>(from)} {}
    static void call_held(kept_function& of, const char* folder) {
      static_cast<void>(static_cast<held&>(of).function(folder));
    }
    static void destroy_held(kept_function& of) noexcept { delete &static_cast<held&>(of); }

    Function function;
  };

  /// Whether the argument is a null pointer, or a std::function without a function.
  template <class Function>
  static bool is_null(const Function& function) noexcept {
    using type = std::decay_t<Function>;
    if constexpr (std::is_constructible_v<bool, const type&> && !std::is_empty_v<type> &&
                  !std::is_function_v<Function>) {
      return !static_cast<bool>(function);
    } else {
      return false;
    }
  }

  kept_function* function_ = nullptr;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_FOLDER_LISTENER_HPP
