"""The engines that an evaluation runs: `names`, the `protocol`, one adapter a file, and `opening` one by its name."""
