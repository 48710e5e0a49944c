//! An exhaustive model of the election: three replicas that take the very steps of the product, one API server, and an
//! adversary with a bounded number of faults.
//!
//! Belongs here: the world around [`step_under`](super::step::step_under), its faults, and what must hold of it. Does
//! not belong here: any rule of the protocol.
//!
//! **Time** is discrete. In one tick the clock of a slow replica advances by 5 and that of a fast one by 7 units (a
//! ratio of 1.4); lease duration, renew deadline and retry period are 75, 50 and 10 units (15 : 10 : 2). Whatever is
//! due happens within the tick, in any order, unless a fault delays it.
//!
//! **Faults**, each counted against the bound: a replica crashes, is cut off, suspended (its clock goes on), stops
//! gracefully, or its watch stalls, all for any time; a request is lost, delayed for any time, or fails; a reply is
//! lost or delayed for any time; an outsider edits the metadata, clears the holder, writes a stranger or the identity
//! of a replica into the Lease, forges a release, writes an old state back, or deletes it. Recovery is free and may
//! happen at any time: restart with the same or another identity, reconnection, resumption, late delivery.
//!
//! **Safety**: at most one valid permit at any instant. **Liveness**: from every state reached, the same steps with
//! all faults healed lead to exactly one valid permit within a bounded number of ticks. (An `eventually` property
//! would ignore paths that end in a cycle.)
//!
//! The states are finite because they are renumbered after each action: moments relative to each replica's clock,
//! versions, uids and wall-clock times by rank. Only their order and equality matter to the protocol.

mod canonical;
mod checks;
mod liveness;
mod network;
mod outsider;
mod world;
