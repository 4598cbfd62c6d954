//! Models of what several machine threads do at once, checked in every order. A workspace of its
//! own, as `fuzz/` is: what the checker needs of libraries stays out of the project's.
