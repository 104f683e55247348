// Precedes the library's own header in builds for ThreadSanitizer. There it would give its map
// fields two more members, which neither the installed libprotobuf nor the generated code (compiled
// without sanitizers) has: the two sides of a call would lay out messages differently.
#pragma once
#pragma push_macro("__SANITIZE_THREAD__")
#undef __SANITIZE_THREAD__
#include_next <google/protobuf/map_field.h>
#pragma pop_macro("__SANITIZE_THREAD__")
