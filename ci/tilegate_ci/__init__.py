"""What ci/gate is made of: load -> pair -> judge -> render."""
