//! What each API sends and answers.
