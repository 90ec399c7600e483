//! Several transactions under one commit.

use std::collections::VecDeque;
use std::sync::Arc;

use rusqlite::{Connection, ErrorCode};

use super::Job;
use super::apply::{Applied, apply};
use crate::clock::Clock;
use crate::error::StoreError;
use crate::hub::Hub;
use crate::transaction::{Outcome, Transaction};

type Answer = tokio::sync::oneshot::Sender<Result<Outcome, StoreError>>;

/// The writing connection.
pub(super) struct Group {
    connection: Connection,
    hub: Arc<Hub>,
    clock: Clock,
    /// Set once the disk has failed in a way after which the file's state is
    /// not known.
    broken: Option<StoreError>,
}

impl Group {
    pub(super) fn new(connection: Connection, hub: Arc<Hub>, clock: Clock) -> Self {
        Self {
            connection,
            hub,
            clock,
            broken: None,
        }
    }

    /// Commits jobs together and answers each.
    pub(super) fn commit(&mut self, jobs: Vec<Job>) {
        let mut waiting = VecDeque::from(jobs);
        while !waiting.is_empty() {
            if let Some(error) = &self.broken {
                for job in waiting.drain(..) {
                    answer(job.answer, Err(error.clone()));
                }
                return;
            }
            self.commit_some(&mut waiting);
        }
    }

    /// One SQL transaction over as many jobs as possible.
    fn commit_some(&mut self, waiting: &mut VecDeque<Job>) {
        let mut done: Vec<(Answer, Applied)> = Vec::new();
        if let Err(error) = self.connection.execute_batch("BEGIN IMMEDIATE") {
            self.fail(waiting.drain(..).map(|job| job.answer), &error.into());
            return;
        }
        while let Some(job) = waiting.pop_front() {
            match self.savepoint(job.transaction) {
                Ok(applied) => done.push((job.answer, applied)),
                Err(error) => {
                    // A full or failing disk may have rolled back everything,
                    // the work of earlier jobs included.
                    let lost = self.connection.is_autocommit();
                    if lost {
                        let answers = done.drain(..).map(|(answer, _)| answer);
                        self.fail(answers.collect::<Vec<_>>().into_iter(), &error);
                    }
                    answer(job.answer, Err(error));
                    if lost {
                        return;
                    }
                }
            }
        }
        match self.connection.execute_batch("COMMIT") {
            Ok(()) => self.succeed(done),
            Err(error) => {
                if !self.connection.is_autocommit() {
                    // Its failure shows at the next BEGIN.
                    let _ = self.connection.execute_batch("ROLLBACK");
                }
                let unknown = is_disk_failure(&error);
                let error = StoreError::from(error);
                if unknown {
                    tracing::error!(%error, "the event store stops writing: its disk failed");
                    self.broken = Some(error.clone());
                }
                self.fail(done.into_iter().map(|(answer, _)| answer), &error);
            }
        }
    }

    /// Applies one job so that its failure leaves the others' work alone. If
    /// that cannot be had, the whole SQL transaction is gone afterwards.
    fn savepoint(&self, transaction: Transaction) -> Result<Applied, StoreError> {
        let run = |sql| self.connection.prepare_cached(sql)?.execute([]);
        run("SAVEPOINT job")?;
        let result = apply(&self.connection, transaction, self.clock.now());
        if self.connection.is_autocommit() {
            return result;
        }
        let undone = match &result {
            Ok(_) => Ok(0),
            Err(_) => run("ROLLBACK TO job"),
        };
        if let Err(error) = undone.and_then(|_| run("RELEASE job")) {
            run("ROLLBACK")?;
            return Err(error.into());
        }
        result
    }

    fn succeed(&self, done: Vec<(Answer, Applied)>) {
        for (to, applied) in done {
            for (stream, max_offset) in &applied.heads {
                self.hub.publish(stream, *max_offset);
            }
            answer(to, Ok(applied.outcome));
        }
    }

    fn fail(&self, answers: impl Iterator<Item = Answer>, error: &StoreError) {
        for to in answers {
            answer(to, Err(error.clone()));
        }
    }
}

fn answer(to: Answer, result: Result<Outcome, StoreError>) {
    // The caller may have gone; the commit stands all the same.
    let _ = to.send(result);
}

/// After a failed write or fsync the kernel may have dropped pages that were
/// never stored, so nothing more can be promised until the file is opened anew.
fn is_disk_failure(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt)
    )
}
