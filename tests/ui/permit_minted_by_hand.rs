//! A permit is minted by leadership alone.

use std::time::Duration;

use orchestratord::clock::{Clock, Moment};
use orchestratord::leadership::Permit;

fn main() {
    let _permit = Permit::mint(1, Moment::from(Duration::MAX), Clock::boottime());
}
