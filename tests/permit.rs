//! The leader's work can't be started without leading: each program in `tests/ui` tries to and must not compile, for
//! the reason that stands beside it.

#[test]
fn no_leader_work_without_a_permit() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
