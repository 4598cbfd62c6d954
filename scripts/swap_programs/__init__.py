"""What the bench of programs beside the kernel's swap is made of."""
