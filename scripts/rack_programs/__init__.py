"""Programs that nobody of this project wrote, and where they run."""
