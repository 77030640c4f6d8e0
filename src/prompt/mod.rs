//! Prompts of a wanted length.
