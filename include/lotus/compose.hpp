// Provides compose() and chain, which record operations that follow each other directly. The
// end of one operation and the start of the next share a clock reading.
#ifndef LOTUS_COMPOSE_HPP
#define LOTUS_COMPOSE_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lotus/base/call.hpp"
#include "lotus/config.hpp"
#include "lotus/record/operation_run.hpp"
#include "lotus/record/record.hpp"
#include "lotus/scope.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns the short name of a type: without enclosing namespaces, classes or functions, and
/// without template arguments.
template <class T>
constexpr std::string_view type_name() noexcept {
  // The text ends in "[with T = image::Crop<float>; ...]" (g++) or "[T = image::Crop<float>]"
  // (clang).
  const std::string_view text = __PRETTY_FUNCTION__;
  // The type of a function pointer does not contain the function's name.
  if (std::is_function_v<std::remove_pointer_t<T>> || std::is_member_pointer_v<T>) {
    return "function";
  }
  std::size_t name_at = text.find("T = ") + 4;
  std::size_t name_end = name_at;
  int parentheses = 0;
  bool lambda = false;
  // Nesting depth of template argument lists. A '>' inside parentheses does not end a list.
  int arguments = 0;
  for (std::size_t at = name_at; at < text.size(); ++at) {
    const char c = text[at];
    const bool outside = arguments == 0 && parentheses == 0;
    // A lambda is named "<lambda(int)>" by g++ and "(lambda at crop.cpp:7:3)" by clang.
    if (outside && text.substr(at + 1, 6) == "lambda") lambda = true;
    if (c == '<' && parentheses == 0) {
      ++arguments;
    } else if (c == '>' && parentheses == 0) {
      --arguments;
    } else if (c == '(') {
      ++parentheses;
    } else if (c == ')') {
      --parentheses;
    } else if (!outside) {
      continue;
    } else if (c == ';' || c == ']') {
      break;
    } else if (c == ':') {
      name_at = name_end = at + 1;
      lambda = false;
    } else {
      name_end = at + 1;
    }
  }
  if (lambda) return "lambda";
  return name_at == name_end ? "unnamed" : text.substr(name_at, name_end - name_at);
}

struct transform_name {
  static constexpr std::string_view name() noexcept { return "Transform"; }
};
inline record_tag transform_tag() noexcept {
  return known_tag_of<transform_name>::tag.of(transform_name::name());
}

/// Calls `f` and moves `value` into the call. Returns the result of `f`, or, if `f` returns
/// nothing, the value that `f` changed.
template <class F, class T>
LOTUS_DETAIL_ALWAYS_INLINE auto apply_operation(F& f, T&& value) {
  if constexpr (std::is_invocable_v<F&, T&&>) {
    if constexpr (!std::is_void_v<std::invoke_result_t<F&, T&&>>) {
      return call(f, std::forward<T>(value));
    } else {
      call(f, std::forward<T>(value));
      return std::decay_t<T>{std::forward<T>(value)};
    }
  } else {
    static_assert(std::is_invocable_v<F&, std::decay_t<T>&>,
                  "an operation must take what the one before it returns");
    std::decay_t<T> own{std::forward<T>(value)};
    if constexpr (std::is_void_v<std::invoke_result_t<F&, std::decay_t<T>&>>) {
      call(f, own);
      return own;
    } else {
      return call(f, own);
    }
  }
}

}  // namespace detail

/// A callable and the name under which it is logged: compose(operation{"Flip", f}). Owns the
/// callable. Errors: throws only what copying or moving the callable throws.
template <class F>
struct operation {
  /// @param name  copied, so it must be valid only during this call.
  operation(std::string_view name, F function)
      : call{std::move(function)}, tag{detail::operation_tag(name)} {}

  F call;                  ///< the callable
  detail::record_tag tag;  ///< the tag under which it is logged
};
/// Deduces the type of the callable from a name and the callable.
template <class F>
operation(std::string_view, F) -> operation<F>;

namespace detail {

template <class T>
struct is_operation : std::false_type {};
template <class F>
struct is_operation<operation<F>> : std::true_type {};

template <class F>
auto as_operation(F&& f) {
  if constexpr (is_operation<std::decay_t<F>>::value) {
    return std::decay_t<F>{std::forward<F>(f)};
  } else {
    return operation<std::decay_t<F>>{type_name<std::decay_t<F>>(), std::forward<F>(f)};
  }
}

/// The operations of a `composed` object; run() calls them one after another and records each.
template <class... Fs>
struct operation_list {
  template <class T>
  LOTUS_DETAIL_ALWAYS_INLINE auto run(operation_run&, T&& value) {
    return std::decay_t<T>{std::forward<T>(value)};
  }
};

template <class F, class... Fs>
struct operation_list<F, Fs...> {
  explicit operation_list(operation<F> its_first, operation<Fs>... others)
      : first{std::move(its_first)}, rest{std::move(others)...} {}

  template <class T>
  LOTUS_DETAIL_ALWAYS_INLINE auto run(operation_run& all, T&& value) {
    all.running(first.tag);
    auto result = apply_operation(first.call, std::forward<T>(value));
    all.ended(first.tag);
    if constexpr (sizeof...(Fs) == 0) {
      return result;
    } else {
      return rest.run(all, std::move(result));
    }
  }

  operation<F> first;
  operation_list<Fs...> rest;
};

}  // namespace detail

/// A fixed list of operations that are called one after another; compose() returns it. It is
/// copyable if its callables are, and as thread-safe as they are.
template <class... Fs>
class composed {
 public:
  /// Stores the operations, which are called in this order.
  explicit composed(operation<Fs>... operations)
      : operations_{std::move(operations)...}, whole_{detail::transform_tag()} {}

  /// Moves `value` through all operations and returns the last result. Records one log line for
  /// each operation, and "STransform" for all together. If an operation throws, the exception
  /// propagates and the time up to it is recorded.
  template <class T>
  auto operator()(T&& value) {
    detail::operation_run run{whole_};
    return operations_.run(run, std::forward<T>(value));
  }

 private:
  detail::operation_list<Fs...> operations_;
  detail::record_tag whole_;
};

/// Combines callables into one callable that times each of them: `auto t = compose(Resize{224},
/// operation{"Flip", f});` An operation is named after the callable's type unless it gets a name. A
/// callable receives what the previous one returned, or changes it in place and returns nothing.
/// The result owns copies of the callables. Errors: throws what copying a callable throws; an
/// exception of a callable propagates to the caller of the result, and the time up to it is
/// recorded. Thread safety: that of the callables. Cost: k operations read the clock k + 1 times.
template <class... Fs>
[[nodiscard]] auto compose(Fs&&... fs) {
  return composed{detail::as_operation(std::forward<Fs>(fs))...};
}

namespace detail {

/// One operation of a chain<T>. The operations form a linked list.
template <class T>
class chain_link {
 public:
  explicit chain_link(record_tag tag) noexcept : tag_{tag} {}
  chain_link& operator=(const chain_link&) = delete;
  virtual ~chain_link() = default;
  virtual T call(T value) = 0;
  virtual chain_link* copy() const = 0;

  record_tag tag() const noexcept { return tag_; }
  chain_link*& next() noexcept { return next_; }

 protected:
  chain_link(const chain_link& other) noexcept : tag_{other.tag_} {}

 private:
  record_tag tag_;
  chain_link* next_ = nullptr;
};

template <class T, class F>
class chain_operation final : public chain_link<T> {
 public:
  template <class From>
  chain_operation(record_tag tag, From&& from)
      : chain_link<T>{tag}, function_{std::forward<From>(from)} {}
  T call(T value) override { return apply_operation(function_, std::move(value)); }
  chain_link<T>* copy() const override { return new chain_operation{*this}; }

 private:
  F function_;
};

}  // namespace detail

/// A list of operations on values of type `T`, to which add() appends at run time. Otherwise it
/// works like the result of compose(). Thread safety: add() needs exclusive access; calls may run
/// on several threads at once if the operations may.
template <class T>
class chain {
 public:
  chain() = default;
  /// Copies every operation. Throws what copying one of them throws.
  chain(const chain& other) : whole_{other.whole_} {
    for (auto* link = other.first_; link != nullptr; link = link->next()) append(link->copy());
  }
  /// Moves the operations, so that `other` has none afterwards.
  chain(chain&& other) noexcept { swap(other); }
  /// Copies or moves the operations, depending on the argument.
  chain& operator=(chain other) noexcept {
    swap(other);
    return *this;
  }
  ~chain() {
    while (first_ != nullptr) delete std::exchange(first_, first_->next());
  }

  /// Appends an operation, which takes a T and returns a T, or takes a T& and returns nothing.
  /// @param name  copied, so it must be valid only during this call.
  /// @param f     copied or moved into the chain. Throws std::bad_alloc, and what copying `f`
  /// throws; then the chain is unchanged.
  template <class F>
  chain& add(std::string_view name, F&& f) {
    append(new detail::chain_operation<T, std::decay_t<F>>{detail::operation_tag(name),
                                                           std::forward<F>(f)});
    return *this;
  }

  /// Moves `value` through all operations and returns the result: `value` if there are none. If an
  /// operation throws, the exception propagates and the time up to it is recorded.
  T operator()(T value) {
    detail::operation_run run{whole_};
    for (auto* link = first_; link != nullptr; link = link->next()) {
      run.running(link->tag());
      value = link->call(std::move(value));
      run.ended(link->tag());
    }
    return value;
  }

  /// Returns the number of operations.
  std::size_t size() const noexcept { return size_; }

 private:
  void append(detail::chain_link<T>* link) noexcept {
    (last_ == nullptr ? first_ : last_->next()) = link;
    last_ = link;
    ++size_;
  }

  void swap(chain& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
    std::swap(size_, other.size_);
    std::swap(whole_, other.whole_);
  }

  detail::chain_link<T>* first_ = nullptr;
  detail::chain_link<T>* last_ = nullptr;
  std::size_t size_ = 0;
  detail::record_tag whole_ = detail::transform_tag();
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COMPOSE_HPP
