// Makes fork() lock AddressSanitizer's allocator, as the sanitizer itself does since LLVM 18
// (github.com/llvm/llvm-project/pull/75290). Without this, a child that is forked while another
// thread allocates memory gets a copy of the locked allocator, and its first allocation waits
// forever.

#include <pthread.h>

#if !defined(__clang_major__) || __clang_major__ >= 18
  #error \
      "only for clang before 18: where the runtime takes its locks itself, this would wait for ever"
#endif

// Functions of the sanitizer's runtime library, which is linked into every program.
namespace __lsan {
void LockThreadRegistry();
void UnlockThreadRegistry();
void LockAllocator();
void UnlockAllocator();
}  // namespace __lsan
namespace __sanitizer {
void StackDepotLockAll();
void StackDepotUnlockAll();
}  // namespace __sanitizer

namespace {

void lock_runtime() {
  __lsan::LockThreadRegistry();
  __lsan::LockAllocator();
  __sanitizer::StackDepotLockAll();
}

void unlock_runtime() {
  __sanitizer::StackDepotUnlockAll();
  __lsan::UnlockAllocator();
  __lsan::UnlockThreadRegistry();
}

// Runs before all other constructors, so that the handlers below are registered before all other
// fork handlers. Therefore they lock after all other handlers and unlock before them, which allows
// the other handlers to allocate memory.
__attribute__((constructor(101))) void lock_at_forks() {
  pthread_atfork(lock_runtime, unlock_runtime, unlock_runtime);
}

}  // namespace
