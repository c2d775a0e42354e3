import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sql } from 'kysely';
import { forSelectedDatabases, type OpenDatabase } from '../../test/support/databases/databases.ts';
import { sectionDefaults } from '../../test/support/inputs/section-defaults.ts';
import { RoomsUnderTest } from '../../test/support/rooms/rooms.ts';
import { AccountData, accountDataMigrations, Tags } from '../account-data/index.ts';
import { type AccountTables, accountMigrations } from '../accounts/index.ts';
import { Jobs, jobMigrations } from '../kernel/jobs/index.ts';
import { silentLogger } from '../kernel/observability/index.ts';
import { systemRandomness } from '../kernel/randomness.ts';
import { forbidden, tooLarge } from '../protocol/index.ts';
import type { RoomTables } from '../room-engine/index.ts';
import { serverNoticesSection } from './config.ts';
import { serverNoticeMigrations } from './migrations.ts';
import { NoticeRooms } from './notice-rooms.ts';
import { NoticesToAll } from './notices-to-all.ts';
import { noticesUser } from './notices-user.ts';
import { ServerNotices } from './server-notices.ts';

const content = (body: string) => ({ msgtype: 'm.text', body });

const configuration = { server_notices: { system_mxid_localpart: 'notices' } };
const options = sectionDefaults(serverNoticesSection, configuration).server_notices!;
const sender = noticesUser(options, 'test');
const migrations = [
  ...accountDataMigrations,
  ...accountMigrations,
  ...jobMigrations,
  ...serverNoticeMigrations,
];
const userIds = Array.from({ length: 25 }, (_, index) => `@user${String(index).padStart(2, '0')}:test`);

type Send = ServerNotices['send'];

/** Opens the notices to all users as a process would. @param wrap changes how a notice is sent to one user */
function openNoticesToAll(fixture: RoomsUnderTest, wrap: (send: Send, jobs: Jobs) => Send = (send) => send) {
  const { database, streams, rooms, clock } = fixture;
  const tags = new Tags(new AccountData({ database, streams }));
  const noticeRooms = new NoticeRooms({ database, rooms, tags, user: sender, options, roomVersion: '10' });
  const sending = { user: sender, noticeRooms };
  const notices = new ServerNotices({ rooms, serverName: 'test', userExists: async () => true, sending });
  const jobs = new Jobs({ database, clock, log: silentLogger, isOnlyProcess: true });
  const recipients: string[] = [];
  const wrapped = wrap((...parameters) => notices.send(...parameters), jobs);
  const send: Send = (userId, ...rest) => {
    recipients.push(userId);
    return wrapped(userId, ...rest);
  };
  const check = (type: string) => notices.check(type);
  const toAll = new NoticesToAll({
    ...fixture,
    clock,
    randomness: systemRandomness,
    jobs,
    notices: { send, check },
  });
  return { toAll, jobs, recipients };
}

async function openWithUsers(open: OpenDatabase): Promise<RoomsUnderTest> {
  const fixture = await RoomsUnderTest.open(open, migrations);
  await fixture.database.transaction<AccountTables, void>(async (writer) => {
    for (const userId of userIds) {
      await writer
        .insertInto('users')
        .values({
          user_id: userId,
          folded_id: userId,
          created_at: 1,
          password_hash: null,
          user_type: null,
          appservice_id: null,
          is_guest: 0,
          is_admin: 0,
          is_deactivated: 0,
          is_erased: 0,
          is_locked: 0,
          is_suspended: 0,
        })
        .execute();
    }
  });
  return fixture;
}

/** Counts the stored notices and their rooms. */
async function storedNotices({ database }: RoomsUnderTest, body: string) {
  const { events, rooms } = await database
    .reader<RoomTables>()
    .selectFrom('events')
    .select([sql<number>`count(*)`.as('events'), sql<number>`count(distinct room_nid)`.as('rooms')])
    .where(sql<boolean>`json like ${`%${body}%`}`)
    .executeTakeFirstOrThrow();
  return [Number(events), Number(rooms)];
}

const complete = { status: 'complete', error: undefined, total: 25, sent: 25, failed: 0, failedUsers: {} };

forSelectedDatabases(import.meta.url, (open) => {
  describe('NoticesToAll', () => {
    it('sends no second notice to users who received it before the process crashed', async () => {
      const first = await openWithUsers(open);
      const crashing = openNoticesToAll(first, (send) => async (userId, ...rest) => {
        await send(userId, ...rest);
        if (userId === userIds[4]) throw new Error('crash after the notice, before the progress is stored');
        return '$sent';
      });
      await crashing.jobs.start();
      const noticeId = await crashing.toAll.schedule('m.room.message', content('hello all'));
      await crashing.jobs.settled();
      assert.deepEqual(crashing.recipients, userIds.slice(0, 5));
      assert.equal((await crashing.toAll.status(noticeId))?.status, 'active');
      await crashing.jobs.stop();
      const second = await first.restart(open);
      second.clock.advance(60_000);
      const { toAll, jobs, recipients } = openNoticesToAll(second);
      await jobs.start();
      await jobs.settled();
      assert.deepEqual(await toAll.status(noticeId), complete);
      assert.deepEqual(recipients, userIds);
      assert.deepEqual(await storedNotices(second, 'hello all'), [25, 25]);
      await jobs.stop();
    });

    it('continues after the last user who has received the notice when the server is stopped and started', async () => {
      const first = await openWithUsers(open);
      let stopped: Promise<void> | undefined;
      const stopping = openNoticesToAll(first, (send, jobs) => (userId, ...rest) => {
        if (userId === userIds[21]) stopped = jobs.stop();
        return send(userId, ...rest);
      });
      await stopping.jobs.start();
      const noticeId = await stopping.toAll.schedule('m.room.message', content('hello all'));
      await stopping.jobs.settled();
      await stopped;
      assert.deepEqual(stopping.recipients, userIds.slice(0, 22));
      assert.equal((await stopping.toAll.status(noticeId))?.sent, 22);
      const second = await first.restart(open);
      const { toAll, jobs, recipients } = openNoticesToAll(second);
      await jobs.start();
      await jobs.settled();
      assert.deepEqual(recipients, userIds.slice(22));
      assert.deepEqual(await toAll.status(noticeId), complete);
      assert.deepEqual(await storedNotices(second, 'hello all'), [25, 25]);
      await jobs.stop();
    });

    it('sends a cancelled notice to no further user, also after a restart, and counts the users who have received it', async () => {
      const first = await openWithUsers(open);
      const { toAll, jobs, recipients } = openNoticesToAll(first, (send) => async (userId, ...rest) => {
        if (userId === userIds[21]) await toAll.cancel(noticeId);
        return send(userId, ...rest);
      });
      const noticeId = await toAll.schedule('m.room.message', content('hello all'));
      const { status, total } = (await toAll.status(noticeId))!;
      assert.deepEqual([status, total], ['scheduled', 25]);
      await jobs.start();
      await jobs.settled();
      assert.deepEqual(recipients, userIds.slice(0, 22));
      const atEnd = { ...complete, status: 'cancelled', sent: 22 };
      assert.deepEqual(await toAll.status(noticeId), atEnd);
      const [listed] = await jobs.list({ kind: 'server-notices/send-to-all', state: 'cancelled' });
      assert.deepEqual([listed?.key, listed?.running], [noticeId, false]);
      await toAll.cancel(noticeId);
      await jobs.stop();
      const second = await first.restart(open);
      const restarted = openNoticesToAll(second);
      await restarted.jobs.start();
      second.clock.advance(60_000);
      await restarted.jobs.settled();
      assert.deepEqual(restarted.recipients, []);
      assert.deepEqual(await restarted.toAll.status(noticeId), atEnd);
      await restarted.jobs.stop();
    });

    it('sends a notice to no user when it was cancelled before it was sent to the first', async () => {
      const fixture = await openWithUsers(open);
      const { toAll, jobs, recipients } = openNoticesToAll(fixture);
      const noticeId = await toAll.schedule('m.room.message', content('hello all'));
      await toAll.cancel(noticeId);
      await jobs.start();
      await jobs.settled();
      assert.deepEqual(recipients, []);
      assert.deepEqual(await toAll.status(noticeId), { ...complete, status: 'cancelled', sent: 0 });
      await jobs.stop();
    });

    it('ends a notice that no user can receive as failed with its error, and counts no user as failed', async () => {
      const fixture = await openWithUsers(open);
      const { toAll, jobs, recipients } = openNoticesToAll(fixture, () => async () => {
        throw tooLarge('too large for every room');
      });
      const noticeId = await toAll.schedule('m.room.message', content('hello all'));
      await jobs.start();
      for (let hours = 0; (await toAll.status(noticeId))?.status !== 'failed' && hours < 30; hours += 1) {
        await jobs.settled();
        fixture.clock.advance(3_600_000);
      }
      const error = 'too large for every room';
      assert.deepEqual(await toAll.status(noticeId), { ...complete, status: 'failed', sent: 0, error });
      assert.deepEqual(new Set(recipients), new Set([userIds[0]]));
      await jobs.stop();
    });

    it('counts users who cannot receive the notice, and sends it to the others, but not to users who register later', async () => {
      const fixture = await openWithUsers(open);
      const { toAll, jobs, recipients } = openNoticesToAll(fixture, (send) => async (userId, ...rest) => {
        if (userId === userIds[1]) throw forbidden('not this user');
        if (userId === userIds[2])
          await fixture.database.transaction<AccountTables, unknown>((writer) =>
            writer
              .updateTable('users')
              .set({ created_at: fixture.clock.now() + 1 })
              .where('user_id', '=', userIds[24]!)
              .execute(),
          );
        return send(userId, ...rest);
      });
      await jobs.start();
      const noticeId = await toAll.schedule('m.room.message', content('hello all'));
      await jobs.settled();
      const failedUsers = { [userIds[1]!]: 'not this user' };
      assert.deepEqual(await toAll.status(noticeId), { ...complete, sent: 23, failed: 1, failedUsers });
      assert.equal(recipients.includes(userIds[24]!), false);
      await jobs.stop();
    });
  });
});
