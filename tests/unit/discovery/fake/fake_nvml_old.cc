// The fake driver as it was ten years ago.
#define BERTH_FAKE_NVML_OLD
#include "tests/unit/discovery/fake/fake_nvml.cc"
