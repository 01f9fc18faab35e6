"""The lab's commands of ci/gate, a module each: its options, and what it does with them."""
