"""Several convolutional networks trained at once on one device.

Start with ``convolutional``; ``recipe`` says how, ``run`` is one network's training,
``graphed`` replays a step as a CUDA graph, ``workers`` are the threads of the CPU, and
``freed_memory`` is what steps leave one another. Touches probes.
"""
