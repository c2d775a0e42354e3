import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import { setUpJobs } from '../../kernel/jobs/test/jobs-under-test.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { AutoJoin, type AutoJoinDeps } from '../auto-join/auto-join.ts';
import { autoJoinJob } from '../auto-join/auto-join-jobs.ts';
import { leaveAllJob, profileJob } from './membership-jobs.ts';
import { type MembershipJobDeps, runMembershipJobs } from './run-membership-jobs.ts';

const alice = '@alice:test';
const roomIds = ['!a:test', '!b:test', '!c:test'];
const guests = ['@1:test', '@2:test', '@3:test'];

/** Changes the membership of a user in a room. */
type Change = (userId: string, roomId: string) => Promise<void>;

/** Registers the jobs over rooms in which Alice and the guests are joined. */
function registerJobs(
  jobs: Jobs,
  change: Change,
  isGuest: (userId: string) => Promise<boolean> = async () => true,
) {
  const engine = {
    stream: { subscribe: () => undefined },
    userRooms: {
      withMembership: async () => roomIds,
      of: async () => new Map(roomIds.map((roomId) => [roomId, { roomId, membership: 'join' }])),
    },
    heads: {
      get: async () => ({
        entry: (type: string) => (type === 'm.room.member' ? { nid: 1, membership: 'join' } : undefined),
        membership: () => undefined,
        members: new Map([...guests, '@remote:far'].map((userId) => [userId, 'join'])),
      }),
    },
    events: { get: async () => ({ event: { content: {} } }) },
  };
  const memberships = { join: change, leave: change, forget: async () => undefined };
  const options = { forget_rooms_on_leave: false, auto_join_rooms: roomIds, auto_join_mxid_localpart: null };
  runMembershipJobs({
    jobs,
    engine,
    memberships,
    isGuest,
    options,
    serverName: 'test',
  } as unknown as MembershipJobDeps);
  const rooms = { engine, memberships };
  new AutoJoin({ jobs, log: silentLogger, options, rooms } as unknown as AutoJoinDeps);
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('a job that changes memberships', () => {
    for (const [kind, payload] of [
      [profileJob, alice],
      [leaveAllJob, alice],
      ['rooms/guests', roomIds[0]!],
      [autoJoinJob, { userId: alice, isFirst: false }],
    ] as const) {
      it(`is continued after the next start when the server stops between two changes (${kind})`, async () => {
        const first = await setUpJobs(open);
        const begun = Promise.withResolvers<void>();
        const stopping = Promise.withResolvers<void>();
        let changes = 0;
        registerJobs(first.jobs, async () => {
          changes += 1;
          begun.resolve();
          await stopping.promise;
        });
        await first.jobs.start();
        await first.schedule({ kind, payload });
        await begun.promise;
        const stopped = first.jobs.stop();
        stopping.resolve();
        await stopped;
        assert.equal(changes, 1);

        const second = await setUpJobs(open, {
          database: await open.restart(first.database),
          clock: first.clock,
        });
        const changed: string[] = [];
        registerJobs(second.jobs, async (userId, roomId) => void changed.push(`${userId} ${roomId}`));
        await second.jobs.start();
        await second.jobs.settled();
        assert.equal(changed.length, 3);
        await second.jobs.stop();
      });
    }

    it('looks up no account of a remote member when guests have to leave a room', async () => {
      const { jobs, schedule } = await setUpJobs(open);
      const [asked, left]: [string[], string[]] = [[], []];
      const isGuest = async (userId: string) => asked.push(userId) < 3;
      registerJobs(jobs, async (userId) => void left.push(userId), isGuest);
      await jobs.start();
      await schedule({ kind: 'rooms/guests', payload: roomIds[0]! });
      await jobs.settled();
      assert.deepEqual([asked, left], [guests, guests.slice(0, 2)]);
      await jobs.stop();
    });
  });
});
