import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { mentions, UnreliableDatabase } from '../../test/support/databases/unreliable-database.ts';
import { sectionDefaults } from '../../test/support/inputs/section-defaults.ts';
import { alice, RoomsUnderTest } from '../../test/support/rooms/rooms.ts';
import { plainCaches } from '../../test/support/servers/caches.ts';
import { AccountData, accountDataMigrations, Tags } from '../account-data/index.ts';
import { silentLogger } from '../kernel/observability/index.ts';
import { forbidden } from '../protocol/index.ts';
import { ConsentNotices } from './automatic/consent-notices.ts';
import { OncePerUser } from './automatic/once-per-user.ts';
import { UsageLimitNotices } from './automatic/usage-limit-notices.ts';
import { serverNoticesSection } from './config.ts';
import { serverNoticeMigrations } from './migrations.ts';
import { NoticeRooms } from './notice-rooms.ts';
import { noticesUser } from './notices-user.ts';
import { ServerNotices } from './server-notices.ts';

const configuration = { server_notices: { system_mxid_localpart: 'notices', auto_join: true } };
const options = sectionDefaults(serverNoticesSection, configuration).server_notices!;
const user = noticesUser(options, 'test');
const migrations = [...accountDataMigrations, ...serverNoticeMigrations];

function openNoticeRooms({ database, streams, rooms }: RoomsUnderTest): NoticeRooms {
  const tags = new Tags(new AccountData({ database, streams }));
  return new NoticeRooms({ database, rooms, tags, user, options, roomVersion: '12' });
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('NoticeRooms after a crash', () => {
    for (const missing of ['invite', 'join']) {
      it(`prepares the unfinished room for the next notice when the ${missing} is missing`, async () => {
        let unreliable: UnreliableDatabase | undefined;
        const first = await RoomsUnderTest.open(open, migrations, {
          wrapDatabase: (database) => (unreliable = new UnreliableDatabase(database)),
        });
        unreliable!.fails = (batch) => mentions(batch, `"membership":"${missing}"`) && mentions(batch, alice);
        await assert.rejects(openNoticeRooms(first).prepare(alice), /disk is full/);
        const second = await first.restart(open);
        const again = openNoticeRooms(second);
        const roomId = await again.of(alice);
        assert.ok(roomId !== undefined);
        const before = await second.engine.heads.get(roomId);
        assert.equal(before?.membership(alice), missing === 'invite' ? undefined : 'invite');
        assert.equal(await again.prepare(alice), roomId);
        assert.equal((await second.engine.heads.get(roomId))?.membership(alice), 'join');
        assert.deepEqual(await second.engine.userRooms.withMembership(user.userId, 'join'), [roomId]);
      });
    }
  });

  it('sends the notices about the policy and about the user limit only once, even if the server stops before a notice is recorded or pinned', async () => {
    const fixture = await RoomsUnderTest.open(open, migrations);
    const { database, clock, rooms } = fixture;
    const noticeRooms = openNoticeRooms(fixture);
    const sending = { user, noticeRooms };
    const notices = new ServerNotices({ rooms, serverName: 'test', userExists: async () => true, sending });
    const newOncePerUser = () =>
      new OncePerUser('users', { caches: plainCaches(clock), clock, log: silentLogger });
    const stopped = async () => {
      throw new Error('stopped');
    };
    const askForConsent = async (isStopped: boolean) => {
      const oncePerUser = newOncePerUser();
      const used = isStopped ? { reader: () => database.reader(), transaction: stopped } : database;
      const consent = { hasAgreed: async () => false, link: () => 'https://test/consent' };
      new ConsentNotices(
        { database: used as never, notices, consent, isGuest: async () => false, oncePerUser },
        { version: '1', content: { msgtype: 'm.text', body: 'agree' }, toGuests: false },
      ).onActivity(alice);
      await oncePerUser.settled();
    };
    const announceLimit = async (isStopped: boolean) => {
      const oncePerUser = newOncePerUser();
      const send: ServerNotices['send'] = (userId, content, manner) =>
        isStopped && manner?.type ? stopped() : notices.send(userId, content, manner);
      const limit = { isReached: true, appliesTo: () => true, error: () => forbidden('full') };
      const deps = { rooms, notices: { send }, noticeRooms, limit, oncePerUser, clock, alerts: true };
      new UsageLimitNotices(deps).onActivity(alice);
      await oncePerUser.settled();
    };
    for (const isStopped of [true, false, false]) {
      await askForConsent(isStopped);
      await announceLimit(isStopped);
    }
    const roomId = await noticeRooms.of(alice);
    const head = (await fixture.engine.heads.get(roomId!))!;
    const events = await fixture.engine.events.timeline(head.roomNid, { limit: 100, direction: 'forward' });
    const sent = (type: string) => events.filter(({ event }) => event.type === type);
    const notice = sent('m.room.message').at(-1)!.event;
    assert.deepEqual(
      sent('m.room.message').map(({ event }) => event.content['body']),
      ['agree', 'full'],
    );
    assert.deepEqual(
      sent('m.room.pinned_events').map(({ event }) => event.content),
      [{ pinned: [notice.eventId] }],
    );
  });
});
