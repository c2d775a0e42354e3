import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases, selectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import {
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
  type TestUser,
} from '../../../test/support/servers/server.ts';
import { registrationMac } from '../../accounts/index.ts';
import { TextQuery } from '../../kernel/database/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { directoryMigrations } from '../migrations.ts';
import type { DirectoryTables } from '../tables.ts';
import { startRoomStats } from '../test/started-room-stats.ts';
import { RemoteUsers } from './remote-users.ts';
import { userTexts, writeUser } from './store.ts';
import { UserDirectory } from './user-directory.ts';

const v3 = '/_matrix/client/v3';

type Found = { user_id: string; display_name?: string; avatar_url?: string };

/** A server, its users, and their searches. */
class DirectoryUsers {
  readonly server: TestServer;

  constructor(server: TestServer) {
    this.server = server;
  }

  static async start(database: 'sqlite' | 'postgres', userDirectory: object = {}) {
    const config = { directory: { user_directory: userDirectory } } as ConfigurationOverrides;
    // The clock stands still: no search times out on a slow machine.
    return new DirectoryUsers(await startTestServer({ database, config, clock: manualClock() }));
  }

  async register(username: string, displayname?: string): Promise<TestUser> {
    const user = await this.server.register(username);
    if (displayname !== undefined) await this.setField(user, 'displayname', displayname);
    return user;
  }

  setField(user: TestUser, field: string, value: string) {
    const path = `${v3}/profile/${user.userId}/${field}`;
    return this.server.api('PUT', path, { token: user.token, body: { [field]: value } });
  }

  async room(user: TestUser, preset: string, ...others: TestUser[]): Promise<string> {
    const body = { preset, invite: others.map(({ userId }) => userId) };
    const answer = await this.server.api('POST', `${v3}/createRoom`, { token: user.token, body });
    const roomId = String(answer.body['room_id']);
    for (const { token } of others) {
      await this.server.api('POST', `${v3}/join/${roomId}`, { token, body: {} });
    }
    return roomId;
  }

  search(user: TestUser, body: object) {
    return this.server.api('POST', `${v3}/user_directory/search`, { token: user.token, body });
  }

  /** Searches once, without retries, because a search waits until the entries are up to date. */
  async expectFound(user: TestUser, term: string, expected: readonly string[]): Promise<void> {
    const { body } = await this.search(user, { search_term: term });
    const found = (body['results'] as Found[]).map(({ user_id }) => user_id);
    assert.deepEqual(found, expected, term);
  }
}

for (const database of selectedDatabases(import.meta.url)) {
  describe(`user directory on ${database}`, () => {
    let users: DirectoryUsers;
    let searcher: TestUser;
    let bobby: TestUser;
    let bob: TestUser;

    before(async () => {
      users = await DirectoryUsers.start(database);
      searcher = await users.register('searcher');
      bob = await users.register('bob');
      bobby = await users.register('robert', 'Bobby Tables');
      const hidden = await users.register('bobhidden');
      const tanaka = await users.register('tanaka', '田中さん');
      await users.room(searcher, 'private_chat', bob);
      await users.room(bobby, 'public_chat');
      await users.room(tanaka, 'public_chat');
      await users.room(hidden, 'private_chat');
    });
    after(() => users.server.stop());

    it('finds users in shared or public rooms, best match first', async () => {
      await users.expectFound(searcher, 'bob', ['@bob:test', '@robert:test']);
      await users.expectFound(searcher, 'BOBBY', ['@robert:test']);
      await users.expectFound(searcher, 'tables bob', ['@robert:test']);
      await users.expectFound(searcher, '@robert:test', ['@robert:test']);
      await users.expectFound(searcher, 'able', ['@robert:test']);
      await users.expectFound(searcher, 'searcher', ['@searcher:test']);
    });

    it('finds names in any script', async () => {
      await users.expectFound(searcher, '田中', ['@tanaka:test']);
      await users.expectFound(searcher, '中さ', ['@tanaka:test']);
    });

    it('returns current names and avatars', async () => {
      await users.setField(bobby, 'avatar_url', 'mxc://test/bobby');
      await users.setField(bobby, 'displayname', 'Little Bob');
      await users.expectFound(searcher, 'little', ['@robert:test']);
      const answer = await users.search(searcher, { search_term: 'little' });
      const expected = {
        user_id: '@robert:test',
        display_name: 'Little Bob',
        avatar_url: 'mxc://test/bobby',
      };
      assert.deepEqual(answer.body, { results: [expected], limited: false });
      await users.expectFound(searcher, 'tables', []);
      await users.setField(bobby, 'displayname', 'Bobby Tables');
      await users.expectFound(searcher, 'tables', ['@robert:test']);
    });

    it('sets limited when there are more results, finds nothing for a term without a word, and rejects a search without a term, with a negative limit or without a token', async () => {
      const limited = await users.search(searcher, { search_term: 'bob', limit: 1 });
      assert.deepEqual([limited.body['limited'], (limited.body['results'] as Found[]).length], [true, 1]);
      assert.equal((await users.search(searcher, { search_term: 'bob', limit: 2 })).body['limited'], false);
      for (const term of ['', ' ', '*', '"']) {
        const { body } = await users.search(searcher, { search_term: term });
        assert.deepEqual(body, { results: [], limited: false });
      }
      assert.equal((await users.search(searcher, {})).status, 400);
      assert.equal((await users.search(searcher, { search_term: 'bob', limit: -1 })).status, 400);
      const withoutToken = await users.server.api('POST', `${v3}/user_directory/search`, {
        body: { search_term: 'b' },
      });
      assert.equal(withoutToken.status, 401);
    });

    it('does not find users who left their public rooms or were deactivated', async () => {
      const brief = await users.register('brief');
      const roomId = await users.room(brief, 'public_chat');
      await users.expectFound(searcher, 'brief', ['@brief:test']);
      await users.server.api('POST', `${v3}/rooms/${roomId}/leave`, { token: brief.token, body: {} });
      await users.expectFound(searcher, 'brief', []);
      await users.room(brief, 'public_chat');
      await users.expectFound(searcher, 'brief', ['@brief:test']);
      await users.server.api('POST', `${v3}/account/deactivate`, {
        token: brief.token,
        body: {
          auth: {
            type: 'm.login.password',
            identifier: { type: 'm.id.user', user: 'brief' },
            password: 'correct horse',
          },
        },
      });
      await users.expectFound(searcher, 'brief', []);
    });
  });
}

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('options for the user directory', () => {
    const withUsers = async (
      options: object,
      use: (users: DirectoryUsers, searcher: TestUser) => Promise<void>,
    ) => {
      const users = await DirectoryUsers.start(kind, options);
      try {
        await use(users, await users.register('searcher'));
      } finally {
        await users.server.stop();
      }
    };

    it('[option: user_directory.enabled] finds no users when disabled', async () => {
      await withUsers({ enabled: false }, async (users, searcher) => {
        await users.room(await users.register('bob'), 'public_chat');
        await users.expectFound(searcher, 'bob', []);
      });
    });

    it('[option: user_directory.search_all_users] finds all users when enabled', async () => {
      await withUsers({ search_all_users: true }, async (users, searcher) => {
        await users.register('bob');
        await users.expectFound(searcher, 'bob', ['@bob:test']);
      });
      await withUsers({ search_all_users: false }, async (users, searcher) => {
        await users.register('bob');
        await users.room(await users.register('bobby'), 'public_chat');
        await users.expectFound(searcher, 'bob', ['@bobby:test']);
        // Users find themselves, though they are in no room.
        await users.expectFound(searcher, 'searcher', ['@searcher:test']);
      });
    });

    it('[option: user_directory.show_locked_users] finds locked users only when enabled', async () => {
      for (const show of [false, true]) {
        await withUsers({ show_locked_users: show }, async (users, searcher) => {
          await users.room(await users.register('bob'), 'public_chat');
          await users.expectFound(searcher, 'bob', ['@bob:test']);
          const lock = await requestAsNewAdmin(users.server, '/_matrix/client/v1/admin/lock/@bob:test', {
            locked: true,
          });
          assert.equal(lock.status, 200, lock.raw);
          await users.expectFound(searcher, 'bob', show ? ['@bob:test'] : []);
        });
      }
    });
  });
});

/** Registers an administrator, and sends a PUT request as this administrator. */
async function requestAsNewAdmin(server: TestServer, path: string, body: object) {
  const nonce = String((await server.api('GET', '/_synapse/admin/v1/register')).body['nonce']);
  const account = { nonce, username: 'admin', password: 'correct horse', admin: true };
  const mac = registrationMac(account, 'shared secret');
  const made = await server.api('POST', '/_synapse/admin/v1/register', { body: { ...account, mac } });
  return server.api('PUT', path, { token: String(made.body['access_token']), body });
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('remote users in the user directory', () => {
    const startIndex = async (fixture: RoomsUnderTest) => {
      const { engine, database, streams, clock } = fixture;
      const deps = { engine, database, streams, clock, log: silentLogger, serverName: 'test' };
      const remote = new RemoteUsers(deps);
      await remote.start();
      return remote;
    };
    const indexedUsers = async ({ database }: RoomsUnderTest, term: string) => {
      const query = new TextQuery(term);
      const nids = await database.fullText(userTexts).candidates({ query, limit: 10 });
      const rows = await database
        .reader<DirectoryTables>()
        .selectFrom('user_directory')
        .selectAll()
        .execute();
      return rows
        .filter(({ nid }) => nids.includes(nid))
        .map(({ user_id, display_name }) => [user_id, display_name]);
    };
    const dora = '@dora:far.example';

    it('finds remote users by the names in their memberships', async () => {
      const fixture = await RoomsUnderTest.open(open, directoryMigrations);
      const remote = await startIndex(fixture);
      const roomId = await fixture.room(alice);
      await fixture.rooms.memberships.join(dora, roomId, { extraContent: { displayname: 'Dora' } });
      await remote.caughtUp();
      assert.deepEqual(await indexedUsers(fixture, 'dor'), [[dora, 'Dora']]);
      assert.deepEqual(await indexedUsers(fixture, 'alice'), []);
      await fixture.leave(dora, roomId);
      await fixture.rooms.memberships.join(dora, roomId, {
        extraContent: { displayname: 'Explorer', avatar_url: 5 },
      });
      await remote.caughtUp();
      assert.deepEqual(await indexedUsers(fixture, 'explo'), [[dora, 'Explorer']]);
      await remote.stop();
    });

    it('keeps the first 500 characters of the name of a remote user, and no avatar URL of more than 500 characters', async () => {
      const fixture = await RoomsUnderTest.open(open, directoryMigrations);
      const remote = await startIndex(fixture);
      const roomId = await fixture.room(alice);
      const displayname = `Dora ${'é'.repeat(495)} later`;
      const avatar_url = `mxc://far.example/${'a'.repeat(500)}`;
      await fixture.rooms.memberships.join(dora, roomId, { extraContent: { displayname, avatar_url } });
      await remote.caughtUp();
      assert.deepEqual(await indexedUsers(fixture, 'dora'), [[dora, displayname.slice(0, 500)]]);
      assert.deepEqual(await indexedUsers(fixture, 'later'), []);
      const users = fixture.database.reader<DirectoryTables>().selectFrom('user_directory');
      assert.deepEqual(await users.select('avatar_url').execute(), [{ avatar_url: null }]);
      await remote.stop();
    });

    it('removes the name of a remote user whose membership is redacted', async () => {
      const fixture = await RoomsUnderTest.open(open, directoryMigrations);
      const remote = await startIndex(fixture);
      const roomId = await fixture.room(alice);
      await fixture.rooms.memberships.join(dora, roomId, { extraContent: { displayname: 'Rude' } });
      await remote.caughtUp();
      const head = await fixture.rooms.engine.heads.get(roomId);
      const member = await fixture.rooms.engine.events.get(head!.entry('m.room.member', dora)!.nid);
      await fixture.redact(alice, roomId, member!.event.eventId);
      await remote.caughtUp();
      assert.deepEqual(await indexedUsers(fixture, 'rude'), []);
      assert.deepEqual(await indexedUsers(fixture, 'dora'), [[dora, null]]);
      await remote.stop();
    });

    it('finds remote users whose entries were not written before a restart', async () => {
      const fixture = await RoomsUnderTest.open(open, directoryMigrations);
      const first = await startIndex(fixture);
      await first.stop();
      const roomId = await fixture.room(alice);
      await fixture.rooms.memberships.join(dora, roomId, { extraContent: { displayname: 'Dora' } });
      const again = await fixture.restart(open);
      const remote = await startIndex(again);
      await remote.caughtUp();
      assert.deepEqual(await indexedUsers(again, 'dora'), [[dora, 'Dora']]);
      await remote.stop();
    });

    /**
     * Searches for users named Dora, one local and one remote, who share a room.
     * @param leaves whether the local user leaves the room
     * @returns the user ids that are found
     */
    const search = async (option: object, leaves = false) => {
      const fixture = await RoomsUnderTest.open(open, directoryMigrations);
      const { engine, database } = fixture;
      const remote = await startIndex(fixture);
      const stats = await startRoomStats(fixture);
      const near = { userId: '@dora_of_here:test', displayName: undefined, avatarUrl: undefined };
      await database.transaction<DirectoryTables, void>((writer) =>
        writeUser(writer, database.fullText(userTexts), near),
      );
      const roomId = await fixture.room(near.userId, dora);
      if (leaves) await fixture.leave(near.userId, roomId);
      const account = { isDeactivated: false, isGuest: false, isLocked: false, userType: undefined };
      const localUsers = { account: async () => account, profile: async () => ({}) };
      const options = {
        enabled: true,
        search_all_users: false,
        prefer_local_users: false,
        exclude_remote_users: false,
        show_locked_users: false,
        ...option,
      };
      const directory = new UserDirectory(
        { engine, database, indexes: [stats, remote], localUsers, serverName: 'test' },
        options,
      );
      const { results } = await directory.search({ userId: alice, term: 'dora', limit: 10 });
      await Promise.all([remote.stop(), stats.stop()]);
      return results.map(({ userId }) => userId);
    };

    it('leaves out remote users after this server has left their rooms', async () => {
      assert.deepEqual(await search({}, true), []);
      assert.deepEqual(await search({ search_all_users: true }, true), ['@dora_of_here:test']);
      assert.deepEqual(await search({ search_all_users: true }), [dora, '@dora_of_here:test']);
    });

    it('[option: user_directory.prefer_local_users] returns remote users after local users when enabled', async () => {
      assert.deepEqual(await search({}), [dora, '@dora_of_here:test']);
      assert.deepEqual(await search({ prefer_local_users: true }), ['@dora_of_here:test', dora]);
    });

    it('[option: user_directory.exclude_remote_users] leaves out remote users when enabled', async () => {
      assert.deepEqual(await search({ exclude_remote_users: true }), ['@dora_of_here:test']);
    });
  });
});
