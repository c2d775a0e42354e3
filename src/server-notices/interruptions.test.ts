import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forEachDatabase } from '../../test/support/databases/databases.ts';
import { mentions, UnreliableDatabase } from '../../test/support/databases/unreliable-database.ts';
import { sectionDefaults } from '../../test/support/inputs/section-defaults.ts';
import { alice, RoomsUnderTest } from '../../test/support/rooms/rooms.ts';
import { AccountData, accountDataMigrations, Tags } from '../account-data/index.ts';
import { serverNoticesSection } from './config.ts';
import { serverNoticeMigrations } from './migrations.ts';
import { NoticeRooms } from './notice-rooms.ts';
import { noticesUser } from './notices-user.ts';

const given = { server_notices: { system_mxid_localpart: 'notices', auto_join: true } };
const options = sectionDefaults(serverNoticesSection, given).server_notices!;
const user = noticesUser(options, 'test');
const migrations = [...accountDataMigrations, ...serverNoticeMigrations];

function noticeRooms({ database, streams, rooms }: RoomsUnderTest): NoticeRooms {
  const tags = new Tags(new AccountData({ database, streams }));
  return new NoticeRooms({ database, rooms, tags, user, options, roomVersion: '12' });
}

forEachDatabase((open) => {
  describe('NoticeRooms after a crash', () => {
    for (const missing of ['invite', 'join']) {
      it(`prepares the unfinished room for the next notice when the ${missing} is missing`, async () => {
        let unreliable: UnreliableDatabase | undefined;
        const first = await RoomsUnderTest.open(open, migrations, {
          wrapDatabase: (database) => (unreliable = new UnreliableDatabase(database)),
        });
        unreliable!.fails = (batch) => mentions(batch, `"membership":"${missing}"`) && mentions(batch, alice);
        await assert.rejects(noticeRooms(first).prepare(alice), /disk is full/);
        const second = await first.restart(open);
        const again = noticeRooms(second);
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
});
