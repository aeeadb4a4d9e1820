// Makes fork() take the locks of AddressSanitizer, as its runtime does itself since LLVM 18
// (github.com/llvm/llvm-project/pull/75290). Without this, a child that is forked while another
// thread allocates gets a copy of the locked allocator, and its first allocation waits forever.

#include <pthread.h>

#if !defined(__clang_major__) || __clang_major__ >= 18
  #error \
      "only for clang before 18: where the runtime takes its locks itself, this would wait for ever"
#endif

// Functions of the sanitizer's runtime, which is linked into every program.
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

// Runs before all other constructors, because the handlers that are registered first lock last and
// unlock first, and handlers of other code may allocate.
__attribute__((constructor(101))) void lock_at_forks() {
  pthread_atfork(lock_runtime, unlock_runtime, unlock_runtime);
}

}  // namespace
