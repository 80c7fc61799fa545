"""What every kernel needs, whatever it computes: compilation, the bridge to torch, threads, buffers, arithmetic."""
