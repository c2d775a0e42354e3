import { hearthGoal, multipleOfPeer } from '../goals.ts';
import { type Account, expectOk, registerAccounts } from '../load/account.ts';
import { closedLoop } from '../load/closed-loop.ts';
import { inParallel } from '../load/parallel.ts';
import type { Load, Scenario } from '../scenario.ts';

interface Setup {
  readonly members: readonly Account[];
  readonly room: string;
}

const memberCount = 2_000;

/** Number of members who join at the same time. */
const concurrentJoins = 8;

/** Number of members who read the room at the same time. */
const readers = 8;

/** Returns a load in which members of one room read its whole state, or all its members, again and again. */
function reading(name: string): Load<Setup> {
  return {
    name,
    title: `GET /${name} of a room of ${memberCount} members`,
    operation: 'requests',
    goals: [
      multipleOfPeer(),
      hearthGoal('ms of processor time for a request', { atMost: 3 }, ({ cpuPerThousand }) => cpuPerThousand),
    ],
    run: ({ members, room }, seconds) =>
      closedLoop(readers, seconds, async (index) => {
        const path = `/_matrix/client/v3/rooms/${encodeURIComponent(room)}/${name}`;
        expectOk(await members[index]!.connection.request('GET', path), name);
      }),
  };
}

/** Requests for the state and the members of a large room. */
export const roomState: Scenario<Setup> = {
  name: 'room-state',
  targets: ['hearth', 'peer'],
  async prepare(target) {
    const members = await registerAccounts(target, memberCount);
    const room = await members[0]!.createPublicRoom();
    await inParallel(memberCount - 1, concurrentJoins, (index) => members[index + 1]!.join(room));
    for (const { connection } of members.slice(readers)) connection.close();
    return { members: members.slice(0, readers), room };
  },
  loads: [reading('state'), reading('members'), reading('joined_members')],
  dispose({ members }) {
    for (const { connection } of members) connection.close();
  },
};
