//! What is done, in which order: a function of the seed alone.

use std::time::Duration;

/// Most sandboxes that live at once.
const SANDBOXES: usize = 20;
/// Connections; each sandbox is used by all of them.
pub const CLIENTS: usize = 3;
/// Calls on a destroyed sandbox before its place gets a new one.
const CALLS_ON_THE_DEAD: usize = 3;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Create,
    /// A command that writes a file and looks around.
    Write,
    /// A file by `writeFile`.
    Put,
    /// A command that looks around.
    Look,
    /// A process that outlives its call.
    Spawn,
    /// Whether the processes that were started in this boot run.
    Processes,
    SetEnv(&'static str),
    Start,
    Sleep,
    Restart,
    Destroy,
    KillDaemon,
    /// SIGKILL, this long after the operation before it was sent.
    KillServer(Duration),
}

/// One operation of one client on one sandbox.
#[derive(Clone, Debug)]
pub struct Step {
    pub number: usize,
    pub slot: usize,
    pub life: usize,
    pub client: usize,
    pub op: Op,
}

impl Step {
    /// The sandbox's name: names are retired, so each life has its own.
    pub fn name(&self) -> String {
        format!("s{}-{}", self.slot, self.life)
    }
}

/// The operations of one run.
pub struct Plan {
    pub steps: Vec<Step>,
}

/// Whether a sandbox falls asleep by itself.
pub fn dozes(name: &str) -> bool {
    name.starts_with("s4-") || name.starts_with("s9-") || name.starts_with("s14-")
}

#[derive(Clone, Copy)]
enum Place {
    Empty,
    Alive,
    Dead(usize),
}

impl Plan {
    pub fn new(seed: u64, count: usize) -> Self {
        let mut dice = Dice(seed);
        let places = (count / 8).clamp(3, SANDBOXES);
        let mut lives = vec![(0, Place::Empty); places];
        let mut steps: Vec<Step> = Vec::with_capacity(count);
        let mut slot = 0;
        for number in 0..count {
            // Often the same one again, so that calls meet.
            if dice.below(100) >= 55 {
                slot = dice.below(places);
            }
            let (life, place) = &mut lives[slot];
            let op = match place {
                Place::Empty => {
                    *place = Place::Alive;
                    Op::Create
                }
                Place::Dead(0) => {
                    *life += 1;
                    *place = Place::Alive;
                    Op::Create
                }
                _ if number == count / 2 => Op::KillServer(Duration::from_millis(3)),
                // Every third seed, servers hardly live.
                _ if seed.is_multiple_of(3) && dice.below(1000) < 60 => {
                    Op::KillServer(Duration::from_millis(dice.next() % 20))
                }
                _ => dice.op(),
            };
            match (op, &mut *place) {
                (Op::Destroy, Place::Alive) => *place = Place::Dead(CALLS_ON_THE_DEAD),
                (_, Place::Dead(calls)) => *calls -= 1,
                _ => {}
            }
            let client = dice.below(CLIENTS);
            let life = *life;
            steps.push(Step {
                number,
                slot,
                life,
                client,
                op,
            });
        }
        Self { steps }
    }
}

/// A splitmix64 generator.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    fn op(&mut self) -> Op {
        match self.below(1000) {
            0..230 => Op::Write,
            230..310 => Op::Put,
            310..440 => Op::Look,
            440..530 => Op::Spawn,
            530..600 => Op::Processes,
            600..720 => Op::SetEnv(["A", "B"][self.below(2)]),
            720..770 => Op::Start,
            770..850 => Op::Sleep,
            850..900 => Op::Restart,
            900..935 => Op::Destroy,
            935..982 => Op::KillDaemon,
            _ => Op::KillServer(Duration::from_millis(self.next() % 60)),
        }
    }
}

#[test]
fn a_seed_is_one_plan() {
    let text = |seed| format!("{:?}", Plan::new(seed, 200).steps);
    assert_eq!(text(5), text(5));
    assert_ne!(text(5), text(6));
}
