//! Who leads: a key in the store, renewed by its holder, taken over by others when it stands still.
//!
//! Responsible for: election of one server. Leaves to the store that only one wins, to the epoch guard of writes and
//! the read before each answer (C11) that a loser who does not know it yet can do no harm: nothing safe rests on the
//! clocks here.

use api::{Duration, Epoch, Rev, Time};

use crate::cluster::Cluster;
use crate::event::{LeaseAnswer, Request, ServerEvent};
use crate::observe::Observation;

/// A leader that could not renew for this long, by its own clock, steps down.
const LEASE: Duration = Duration::from_secs(3);
/// Others take over when the key stood still for this long by their own clock: longer, so that in the usual case the
/// old leader has stopped before.
const TAKE_AFTER: Duration = Duration::from_ms(3500);
/// Period of renewals, and of looking.
const TICK: (Duration, Duration) = (Duration::from_ms(900), Duration::from_ms(1100));

/// What a server knows of the lead.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    term: Option<Term>,
    /// The last renewal that was seen, and since when it stands, by this server's clock.
    stands: Option<(Option<Rev>, Time)>,
}

#[derive(Clone, Copy, Debug)]
struct Term {
    epoch: Epoch,
    /// The revision of the last renewal.
    rev: Rev,
    /// When the last renewal that succeeded was asked for.
    renewed: Time,
}

impl Lease {
    /// The term in which this server believes to lead.
    pub(crate) fn term(&self) -> Option<Epoch> {
        self.term.map(|term| term.epoch)
    }

    /// True if by its own clock it leads.
    pub(crate) fn holds(&self, local: Time) -> bool {
        self.term.is_some_and(|term| local.since(term.renewed) < LEASE)
    }
}

impl Cluster {
    pub(crate) fn lease_tick(&mut self, index: usize) {
        let again = self.chance.span(TICK.0, TICK.1);
        self.later_in_server(index, again, ServerEvent::LeaseTick);
        let local = self.servers[index].clock.local(self.now);
        if self.servers[index].lease.term.is_some() && !self.servers[index].lease.holds(local) {
            self.step_down(index);
        }
        let request = match self.servers[index].lease.term {
            Some(term) => Request::Renew { epoch: term.epoch, seen: term.rev, began: local },
            None => Request::Look,
        };
        self.ask_store(index, request);
    }

    pub(crate) fn lease_at_store(&mut self, server: usize, request: Request) -> LeaseAnswer {
        match request {
            Request::Take { epoch, seen } => {
                let head = self.truth.lead(server, epoch, seen);
                if head.is_some() {
                    self.state(Observation::Elected { server, epoch });
                    self.watch_all();
                }
                LeaseAnswer::Taken { epoch, head }
            }
            Request::Renew { epoch, seen, began } => {
                let renewed = self.truth.lead(server, epoch, Some(seen));
                if renewed.is_some() {
                    self.watch_all();
                }
                LeaseAnswer::Renewed { epoch, began, renewed }
            }
            Request::Look | Request::Confirm { .. } | Request::Act { .. } | Request::Head { .. } => {
                LeaseAnswer::Leads(self.truth.leader())
            }
        }
    }

    pub(crate) fn lease_answer(&mut self, index: usize, answer: LeaseAnswer) {
        let embedded = self.store_is_embedded();
        let server = &mut self.servers[index];
        let local = server.clock.local(self.now);
        match answer {
            LeaseAnswer::Leads(leader) => {
                if server.lease.term.is_some() {
                    return;
                }
                let seen = leader.map(|l| l.renewed);
                let since = match server.lease.stands {
                    Some((before, since)) if before == seen => since,
                    Some(_) | None => local,
                };
                server.lease.stands = Some((seen, since));
                // A key that nobody holds, that only we can hold, or that is ours from a life before, is free.
                let free = leader.is_none_or(|l| l.server == index) || embedded;
                if free || local.since(since) > TAKE_AFTER {
                    let epoch = leader.map_or(Epoch(1), |l| l.epoch.next());
                    self.ask_store(index, Request::Take { epoch, seen });
                }
            }
            LeaseAnswer::Taken { epoch, head: Some(head) } => {
                server.lease.term = Some(Term { epoch, rev: head, renewed: local });
                if let Some(mind) = &mut server.mind {
                    mind.elected(epoch, head, local);
                }
                self.think(index);
            }
            LeaseAnswer::Taken { head: None, .. } => {}
            LeaseAnswer::Renewed { epoch, began, renewed } => match (&mut server.lease.term, renewed) {
                (Some(term), Some(rev)) if term.epoch == epoch => {
                    term.rev = rev;
                    term.renewed = term.renewed.max(began);
                }
                (Some(term), None) if term.epoch == epoch => self.step_down(index),
                (Some(_) | None, Some(_) | None) => {}
            },
        }
    }

    /// This server does not lead any more, as far as it knows.
    pub(crate) fn step_down(&mut self, index: usize) {
        let server = &mut self.servers[index];
        if server.lease.term.take().is_some() {
            server.lease.stands = None;
            if let Some(mind) = &mut server.mind {
                mind.deposed();
            }
        }
    }
}
