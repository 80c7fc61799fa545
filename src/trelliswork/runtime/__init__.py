"""What every kernel needs and no mathematics of a model: compilation, the bridge to torch, threads, buffers, arithmetic."""
