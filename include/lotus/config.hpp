// Provides the library's compile-time settings, its macros for compiler attributes, and its inline
// namespace.
#ifndef LOTUS_CONFIG_HPP
#define LOTUS_CONFIG_HPP

#include "lotus/version.hpp"

#if __cplusplus < 201703L
  #error \
      "Lotus needs C++17: compile with -std=c++17 or later, or include lotus/lotus.h (C or C++98)"
#endif

// With LOTUS_DISABLE, nothing in this file records, and start() returns true without starting. The
// file that contains the engine is not affected, because other files of the program need it.
#if defined(LOTUS_DISABLE) && !defined(LOTUS_IMPLEMENTATION)
  #define LOTUS_DETAIL_DISABLED 1
#else
  #define LOTUS_DETAIL_DISABLED 0
#endif

/// 1 if the library can record in this file: without LOTUS_DISABLE, on Linux on x86-64 or aarch64,
/// with pointers of 64 bits (not -m32 or -mx32). Otherwise the headers compile with g++ and clang,
/// but record nothing; on other systems start() returns false.
#if LOTUS_DETAIL_DISABLED
  #define LOTUS_SUPPORTED 0
#elif defined(__linux__) && defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))
  #define LOTUS_SUPPORTED 1
#else
  #define LOTUS_SUPPORTED 0
#endif

// An inline namespace whose name contains LOTUS_ABI, so that two layouts of the library's data in
// one program share no symbols. In files with LOTUS_DISABLE it has another name, because the
// classes in them differ from those in other files of the program.
#define LOTUS_DETAIL_CONCAT_(a, b) a##b
#define LOTUS_DETAIL_CONCAT(a, b) LOTUS_DETAIL_CONCAT_(a, b)
#if LOTUS_DETAIL_DISABLED
  #define LOTUS_DETAIL_INLINE_NAMESPACE_(abi) abi_##abi##_disabled
#else
  #define LOTUS_DETAIL_INLINE_NAMESPACE_(abi) abi_##abi
#endif
#define LOTUS_DETAIL_INLINE_NAMESPACE(abi) LOTUS_DETAIL_INLINE_NAMESPACE_(abi)
#define LOTUS_DETAIL_NAMESPACE_BEGIN \
  namespace lotus {                  \
  inline namespace LOTUS_DETAIL_INLINE_NAMESPACE(LOTUS_ABI) {
#define LOTUS_DETAIL_NAMESPACE_END \
  }                                \
  }
// Encloses rarely executed code of the engine (the code behind the API), such as start and stop,
// recovery, limits and snapshots. In a header-only program every file compiles this code, and at
// -O2 it would take most of the compile time; -Og takes half as long. Do not enclose code that runs
// for each record or scope. Do not enclose functions that such code must inline either, because g++
// does not inline an -Og function into an -O2 function. The pragma never raises the optimization
// level of a file. A compiled library does not need the pragma, because it compiles the engine only
// once.
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && \
    !defined(__OPTIMIZE_SIZE__) && !defined(LOTUS_COMPILED)
  #define LOTUS_DETAIL_COLD_NAMESPACE_BEGIN \
    _Pragma("GCC push_options") _Pragma("GCC optimize(\"Og\")") LOTUS_DETAIL_NAMESPACE_BEGIN
  #define LOTUS_DETAIL_COLD_NAMESPACE_END \
    LOTUS_DETAIL_NAMESPACE_END            \
    _Pragma("GCC pop_options")
#else
  #define LOTUS_DETAIL_COLD_NAMESPACE_BEGIN LOTUS_DETAIL_NAMESPACE_BEGIN
  #define LOTUS_DETAIL_COLD_NAMESPACE_END LOTUS_DETAIL_NAMESPACE_END
#endif

#define LOTUS_DETAIL_STRINGIZE_(x) #x
#define LOTUS_DETAIL_STRINGIZE(x) LOTUS_DETAIL_STRINGIZE_(x)
#define LOTUS_DETAIL_VERSION_STRING           \
  LOTUS_DETAIL_STRINGIZE(LOTUS_VERSION_MAJOR) \
  "." LOTUS_DETAIL_STRINGIZE(LOTUS_VERSION_MINOR) "." LOTUS_DETAIL_STRINGIZE(LOTUS_VERSION_PATCH)

#define LOTUS_DETAIL_LIKELY(x) __builtin_expect(static_cast<bool>(x), 1)
#define LOTUS_DETAIL_UNLIKELY(x) __builtin_expect(static_cast<bool>(x), 0)
#define LOTUS_DETAIL_ALWAYS_INLINE inline __attribute__((always_inline))
#define LOTUS_DETAIL_NOINLINE __attribute__((noinline))
#define LOTUS_DETAIL_COLD __attribute__((noinline, cold))
// Marks a function that a header of the API declares and the engine (the code behind the API)
// defines. The file that defines LOTUS_IMPLEMENTATION emits all these functions, whether or not it
// calls them. They stay inline functions, so that the linker can merge them with those of
// header-only files of the same program.
#if defined(LOTUS_IMPLEMENTATION)
  #define LOTUS_DETAIL_SEAM __attribute__((used)) inline
#else
  #define LOTUS_DETAIL_SEAM inline
#endif
// Marks a function declaration in a header of the API if the function is rarely called, and the
// engine defines it with LOTUS_DETAIL_COLD and LOTUS_DETAIL_SEAM.
#define LOTUS_DETAIL_RARE LOTUS_DETAIL_PER_MODULE __attribute__((cold))
// Marks data of which every shared object must have its own copy, and the functions that use that
// data. Without this attribute the dynamic linker would merge the copies, and the symbol type
// STB_GNU_UNIQUE would keep a plugin (a shared object loaded by dlopen) from being unloaded.
#if defined(__ELF__)
  #define LOTUS_DETAIL_PER_MODULE __attribute__((visibility("hidden")))
#else
  #define LOTUS_DETAIL_PER_MODULE
#endif
// Runs the function `called`, which has no parameters, when the shared object is loaded, before its
// static constructors. Use this macro inside a function: `called` then runs only for files that use
// that function. A global variable with a constructor would instead run code for every file that
// includes the header.
#if defined(__aarch64__)
  #define LOTUS_DETAIL_ADDRESS_CONSTRAINT "S"
#else
  #define LOTUS_DETAIL_ADDRESS_CONSTRAINT "i"
#endif
#if defined(__code_model_large__)
  // With -mcmodel=large no instruction of this form can refer to a function. The callers do not
  // depend on the early call.
  #define LOTUS_DETAIL_CALL_AT_LOAD(called) static_cast<void>(called)
#else
  #define LOTUS_DETAIL_CALL_AT_LOAD(called)                      \
    __asm__ volatile(                                            \
        ".pushsection .init_array.00102,\"aw\",%%init_array\n\t" \
        ".balign 8\n\t"                                          \
        ".8byte %c0\n\t"                                         \
        ".popsection"                                            \
        :                                                        \
        : LOTUS_DETAIL_ADDRESS_CONSTRAINT(called))
#endif
// Guarantees that a variable is initialized at compile time. Without this, g++ initializes a static
// member of a template when the object is loaded, which is too late for a scope in an earlier
// static constructor.
#if defined(__clang__)
  #define LOTUS_DETAIL_CONSTINIT [[clang::require_constant_initialization]]
#elif __GNUC__ >= 10
  #define LOTUS_DETAIL_CONSTINIT __constinit
#else
  #define LOTUS_DETAIL_CONSTINIT
#endif

#endif  // LOTUS_CONFIG_HPP
