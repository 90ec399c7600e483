//! Several transactions under one commit.

use std::collections::VecDeque;
use std::sync::Arc;

use rusqlite::{Connection, ErrorCode};
use tokio::sync::watch;

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
    /// not known. Others look on.
    broken: watch::Sender<Option<StoreError>>,
}

impl Group {
    pub(super) fn new(connection: Connection, hub: Arc<Hub>, clock: Clock) -> Self {
        Self {
            connection,
            hub,
            clock,
            broken: watch::Sender::new(None),
        }
    }

    /// Why nothing is written any more, if so. Its sender ends with the group.
    pub(super) fn broken(&self) -> watch::Receiver<Option<StoreError>> {
        self.broken.subscribe()
    }

    /// Commits jobs together and answers each.
    pub(super) fn commit(&mut self, jobs: Vec<Job>) {
        let mut waiting = VecDeque::from(jobs);
        while !waiting.is_empty() {
            let broken = self.broken.borrow().clone();
            if let Some(error) = broken {
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
                    self.broken.send_replace(Some(error.clone()));
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use serde_json::{Map, json};
    use tokio::sync::{Semaphore, oneshot};

    use super::*;
    use crate::{Append, NewEvent, StreamKey};

    type Answered = oneshot::Receiver<Result<Outcome, StoreError>>;

    fn group(directory: &Path) -> Group {
        let connection = crate::schema::open(&directory.join("a.db")).unwrap();
        Group::new(connection, Arc::new(Hub::new(1)), Clock::host())
    }

    fn job(path: &str, bytes: usize) -> (Job, Answered) {
        let mut payload = Map::new();
        payload.insert("text".into(), json!("x".repeat(bytes)));
        let stream = StreamKey {
            project: None,
            path: path.parse().unwrap(),
        };
        let events = vec![NewEvent::new("a", payload)];
        let (answer, answered) = oneshot::channel();
        let room = Arc::new(Semaphore::new(1));
        let job = Job {
            transaction: Transaction::new().append(Append { stream, events }),
            answer,
            _room: room.try_acquire_owned().unwrap(),
        };
        (job, answered)
    }

    fn run(group: &mut Group, jobs: Vec<(Job, Answered)>) -> Vec<bool> {
        let (jobs, mut answers): (Vec<_>, Vec<_>) = jobs.into_iter().unzip();
        group.commit(jobs);
        let answers = answers.iter_mut().map(|answer| answer.try_recv().unwrap());
        answers.map(|answer| answer.is_ok()).collect()
    }

    fn count(group: &Group) -> i64 {
        group
            .connection
            .query_row("SELECT count(*) FROM events WHERE type = 'a'", [], |row| {
                row.get(0)
            })
            .unwrap()
    }

    #[test]
    fn a_full_disk_fails_only_what_does_not_fit() {
        let directory = tempfile::tempdir().unwrap();
        let mut group = group(directory.path());
        let pages: i64 = group
            .connection
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .unwrap();
        group
            .connection
            .pragma_update(None, "max_page_count", pages + 4)
            .unwrap();
        let answers = run(
            &mut group,
            vec![
                job("/a", 10),
                job("/a", 60_000),
                job("/a", 20),
                job("/a", 60_000),
            ],
        );
        let stored = answers.iter().filter(|stored| **stored).count();
        assert_eq!(
            count(&group),
            i64::try_from(stored).unwrap(),
            "answers are true"
        );
        assert!(!answers[1] && !answers[3]);
        group
            .connection
            .pragma_update(None, "max_page_count", pages + 1000)
            .unwrap();
        assert_eq!(run(&mut group, vec![job("/a", 60_000)]), [true]);
    }

    #[test]
    fn a_lost_sql_transaction_fails_the_jobs_in_it_and_no_later_ones() {
        let directory = tempfile::tempdir().unwrap();
        let mut group = group(directory.path());
        // Stands for an error after which SQLite rolls back everything.
        group
            .connection
            .execute_batch(
                "CREATE TEMP TRIGGER lose BEFORE INSERT ON main.streams
                 WHEN NEW.path = '/bad' BEGIN SELECT RAISE(ROLLBACK, 'lost'); END",
            )
            .unwrap();
        let jobs = vec![job("/a", 1), job("/bad", 1), job("/b", 1), job("/c", 1)];
        assert_eq!(run(&mut group, jobs), [false, false, true, true]);
        assert_eq!(count(&group), 2);
    }

    #[test]
    fn a_broken_disk_stops_all_later_commits() {
        let directory = tempfile::tempdir().unwrap();
        let mut group = group(directory.path());
        let seen = group.broken();
        assert!(seen.borrow().is_none());
        group.broken.send_replace(Some(StoreError::Closed));
        assert!(seen.borrow().is_some(), "seen from outside");
        assert_eq!(
            run(&mut group, vec![job("/a", 1), job("/b", 1)]),
            [false, false]
        );
        assert_eq!(count(&group), 0);
    }
}
