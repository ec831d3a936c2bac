"""What the user declared: typed, validated, diffed. Pure but for reading the file and the environment."""
