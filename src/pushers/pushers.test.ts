import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import type { Database } from '../kernel/database/index.ts';
import { pusherMigrations } from './migrations.ts';
import { mailAppId } from './pusher.ts';
import { Pushers } from './pushers.ts';
import { readExistingIds, readPushers, writePusher } from './store.ts';
import type { PusherTables } from './tables.ts';

const [ann, bob] = ['@ann:test', '@bob:test'];

forSelectedDatabases(import.meta.url, (open) => {
  const settings = (pushkey: string, kind: 'http' | 'email' = 'http') => ({
    kind,
    appId: 'm.email',
    pushkey,
    appDisplayName: 'App',
    deviceDisplayName: 'Phone',
    profileTag: undefined,
    lang: 'en',
    data: {},
    enabled: true,
  });
  const ownerOf = (userId: string) => ({ userId, deviceId: 'PHONE' });
  const openPushers = (database: Pick<Database, 'reader' | 'transaction'>) =>
    new Pushers({
      database: database as Database,
      clock: manualClock(),
      addresses: { findUser: async () => ann },
    });

  describe('Pushers', () => {
    it('reads the pushers of more users, and looks up more pusher ids, than one statement can bind', async () => {
      const database = await open(pusherMigrations);
      const pushers = openPushers(database);
      await pushers.set(ownerOf(ann), settings('key'), false);
      const users = Array.from({ length: 70_000 }, (_, index) => `@user${index}:test`);
      const [pusher, ...others] = await readPushers(database.reader<PusherTables>(), [...users, ann]);
      assert.deepEqual([pusher?.userId, others], [ann, []]);
      assert.deepEqual([...(await pushers.ofUsers([...users, ann])).keys()], [ann]);
      const ids = Array.from({ length: 70_000 }, (_, index) => pusher!.id + index);
      assert.deepEqual([...(await readExistingIds(database.reader<PusherTables>(), ids))], [pusher!.id]);
    });

    it('forgets the last sent unread count when a pusher is set again', async () => {
      const database = await open(pusherMigrations);
      const pushers = openPushers(database);
      await pushers.set(ownerOf(ann), settings('key'), false);
      await database.transaction<PusherTables, void>(async (writer) => {
        await writer.updateTable('pushers').set({ badge: 3 }).execute();
      });
      await pushers.set(ownerOf(ann), settings('key'), false);
      assert.equal((await pushers.list(ann))[0]?.badge, undefined);
    });

    it('when a pusher is set or removed, deletes pushers that earlier versions stored for the same mail address in another form', async () => {
      const database = await open(pusherMigrations);
      const pushers = openPushers(database);
      const otherForms = ['ANN@example.org', ' ann@example.org'];
      const addOtherForms = () =>
        database.transaction<PusherTables, void>(async (writer) => {
          for (const address of otherForms) {
            const owner = { ...ownerOf(ann), setAt: 0 };
            await writePusher(writer, owner, { ...settings(address, 'email'), appId: mailAppId });
          }
        });
      const pushkeys = async () => (await pushers.list(ann)).map(({ pushkey }) => pushkey);
      await addOtherForms();
      assert.deepEqual(await pushkeys(), otherForms);
      const canonicalSettings = { ...settings('Ann@Example.org', 'email'), appId: mailAppId };
      await pushers.set(ownerOf(ann), canonicalSettings, false);
      assert.deepEqual(await pushkeys(), ['ann@example.org']);
      await addOtherForms();
      await pushers.remove(ann, { appId: mailAppId, pushkey: 'ann@example.org' });
      assert.deepEqual(await pushkeys(), []);
    });

    it('keeps the pushers of other users that have the same app_id and pushkey but another kind', async () => {
      const pushers = openPushers(await open(pusherMigrations));
      await pushers.set(ownerOf(ann), settings('ann@example.org', 'email'), false);
      await pushers.set(ownerOf(bob), settings('ann@example.org'), false);
      assert.deepEqual(
        (await pushers.list(ann)).map(({ kind }) => kind),
        ['email'],
      );
    });

    it('includes a user whose pusher was set while the pushers were being read', async () => {
      const database = await open(pusherMigrations);
      const readStarted = Promise.withResolvers<void>();
      const pusherSet = Promise.withResolvers<void>();
      const pushers = openPushers({
        transaction: (work) => database.transaction(work),
        reader: <T>() =>
          database.reader<T>().withPlugin({
            transformQuery: ({ node }) => node,
            async transformResult({ result }) {
              readStarted.resolve();
              await pusherSet.promise;
              return result;
            },
          }),
      });
      const reading = pushers.ofUsers([ann]);
      await readStarted.promise;
      await pushers.set(ownerOf(ann), settings('key'), false);
      pusherSet.resolve();
      await reading;
      assert.deepEqual([...pushers.users], [ann]);
    });
  });
});
