//! The failures on demand of `src/failpoints.rs` are in the binary if, and only if, their cargo feature is on.
//! `cargo verify` looks for the same name in the release binary.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;

#[test]
fn failpoints_are_in_the_binary_only_with_their_feature() {
    let binary = fs::read(env!("CARGO_BIN_EXE_orchestratord")).unwrap();
    let contains = |text: &[u8]| binary.windows(text.len()).any(|window| window == text);
    assert!(
        contains(b"ORCHESTRATORD_LEADER_ELECTION_IDENTITY"),
        "a variable that every build reads is found"
    );
    assert_eq!(contains(b"ORCHESTRATORD_FAILPOINTS"), cfg!(feature = "failpoints"));
}
