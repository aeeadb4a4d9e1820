// Declares a function that is compiled without unwind tables, so that the stack cannot be walked
// beyond it.
#pragma once

/// Records a scope: "Shallow" if `depth` is 0, otherwise "Deep", which is `depth` times 3000 bytes
/// deeper on the stack.
void record_without_tables(int depth);
