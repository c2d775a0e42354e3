/**
 * Measures the state resolution of a forked room with 10,000 conflicted events. `--json` prints the times as
 * one line of JSON.
 */
import { getRoomVersion, type RoomVersion, type StateMap } from '../../src/protocol/index.ts';
import { resolveState } from '../../test/support/rooms/resolve-state.ts';
import { admin, join, publicRoom, type Room, userOf } from './room.ts';

const CONFLICTED = 10_000;
const MEMBERS = CONFLICTED / 2;
const GOAL_MS = 300;
const ROUNDS = 7;

/** A room whose two sides have different states. */
interface Fork {
  readonly room: Room;
  readonly states: readonly StateMap<string>[];
}

/** Makes a fork in which all members change their display names, to different names on the two sides. */
function names(version: RoomVersion): Fork {
  const { room, state } = publicRoom(version, MEMBERS);
  return forked(room, state, (side, sideName) => {
    for (let i = 0; i < MEMBERS; i++) join(room, side, userOf(i), sideName);
  });
}

/** Makes a fork in which members are banned on the right side, and change their display names on the left side. */
function bans(version: RoomVersion): Fork {
  const { room, state } = publicRoom(version, MEMBERS);
  return forked(room, state, (side, sideName) => {
    for (let i = 0; i < MEMBERS; i++) {
      const user = userOf(i);
      const content = { membership: 'ban' };
      if (sideName === 'right')
        room.send({ type: 'm.room.member', sender: admin, stateKey: user, content }, side);
      else join(room, side, user, sideName);
    }
  });
}

/** Makes a fork in which both sides change the power levels many times. */
function powerLevels(version: RoomVersion): Fork {
  const { room, state } = publicRoom(version, 10);
  const adminLevel = version.privilegedCreators ? {} : { [admin]: 100 };
  return forked(room, state, (side) => {
    for (let i = 0; i < MEMBERS; i++) {
      const content = { users: { ...adminLevel, [userOf(i % 10)]: i % 50 } };
      room.send({ type: 'm.room.power_levels', sender: admin, stateKey: '', content }, side);
    }
  });
}

/** Forks a room into two sides. @param grow adds events to one side and changes its state */
function forked(
  room: Room,
  state: StateMap<string>,
  grow: (side: Map<string, string>, sideName: 'left' | 'right') => void,
): Fork {
  const left = new Map(state);
  const right = new Map(state);
  grow(left, 'left');
  grow(right, 'right');
  return { room, states: [left, right] };
}

/** Returns milliseconds: the best of several rounds, so that other work on the machine has little effect. */
function milliseconds(work: () => unknown): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now();
    work();
    best = Math.min(best, performance.now() - start);
  }
  return best;
}

/** The baseline: serializes all events of the room. */
function stringify({ room }: Fork): unknown {
  return Array.from(room.events(), (event) => JSON.stringify(event.pdu)).length;
}

interface Timing {
  readonly version: string;
  readonly name: string;
  readonly milliseconds: number;
  /** Ratio to the baseline. */
  readonly ratio: number;
}

function* timings(): Iterable<Timing> {
  for (const id of ['6', '11', '12']) {
    for (const [name, make] of Object.entries({ names, bans, powerLevels })) {
      const version = getRoomVersion(id)!;
      const fork = make(version);
      const time = milliseconds(() => resolveState(version, fork.states, fork.room));
      yield { version: id, name, milliseconds: time, ratio: time / milliseconds(() => stringify(fork)) };
    }
  }
}

function print({ version, name, milliseconds, ratio }: Timing): void {
  const verdict = milliseconds <= GOAL_MS ? 'reached' : 'MISSED';
  console.log(
    `v${version.padEnd(3)} ${name.padEnd(12)} ${milliseconds.toFixed(1).padStart(8)} ms ${ratio.toFixed(1).padStart(8)} x  ${verdict}`,
  );
}

if (process.argv.includes('--json')) {
  console.log(JSON.stringify([...timings()]));
} else {
  console.log(
    `${CONFLICTED} conflicted events; ratios to JSON.stringify of all events of the room; goal ${GOAL_MS} ms`,
  );
  for (const timing of timings()) print(timing);
}
