"""Foundations of every kernel, whatever it computes: compilation, the bridge to torch, threads, buffers, arithmetic.

compilation.py, compiler.py, kernel_cache.py       kernels: their arithmetic, numba, machine code on disk
light.py, type_names.py     kernels from disk without numba
turns.py, compile_all.py, entries.py               many kernels, compiled by several processes, each once
shipped.py, build.py                               kernels that wheels carry
kernel_math.py, kernel_random.py                   what several kernels call
bridge.py, autograd.py, shapes.py, buffers.py      between tensors and arrays
transfer.py, device_costs.py                       scores of another device on the host and back; when that pays
threads.py, devices.py, scratch.py                 threads, what networks compute on, arrays in mapped files
parents.py                                         processes that end with the one that started them
"""
