"""What was recorded inside a program, in the shape in which the screens draw it. Plain values, no widgets."""
