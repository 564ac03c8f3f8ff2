//! What will happen next.
//!
//! Responsible for: handing out events in the order of their time, and events of the same time in the order in which
//! they were put in. Leaves to [`crate::cluster`] what an event means, and to drop those that came too late for their
//! receiver.
//!
//! Invariant: the order depends on times and on the order of insertion only.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use api::Time;

/// Events in order. The heap moves three numbers per event; the events themselves lie still in their slots.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    heap: BinaryHeap<Reverse<(Time, u64, usize)>>,
    slots: Vec<Option<E>>,
    free: Vec<usize>,
    sequence: u64,
}

impl<E> Agenda<E> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), slots: Vec::new(), free: Vec::new(), sequence: 0 }
    }

    pub(crate) fn put(&mut self, at: Time, event: E) {
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot] = Some(event);
            slot
        } else {
            self.slots.push(Some(event));
            self.slots.len() - 1
        };
        self.sequence += 1;
        self.heap.push(Reverse((at, self.sequence, slot)));
    }

    pub(crate) fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    pub(crate) fn take(&mut self) -> Option<(Time, E)> {
        let Reverse((at, _, slot)) = self.heap.pop()?;
        self.free.push(slot);
        let event = self.slots[slot].take();
        debug_assert!(event.is_some(), "a slot on the heap holds an event");
        event.map(|event| (at, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_time_then_insertion() {
        let mut agenda = Agenda::new();
        for (at, what) in [(5, "c"), (3, "a"), (5, "d"), (3, "b")] {
            agenda.put(Time::from_ms(at), what);
        }
        let mut order = Vec::new();
        while let Some((at, what)) = agenda.take() {
            order.push((at.ms(), what));
            if what == "a" {
                agenda.put(Time::from_ms(3), "b2");
            }
        }
        assert_eq!(order, [(3, "a"), (3, "b"), (3, "b2"), (5, "c"), (5, "d")]);
    }
}
