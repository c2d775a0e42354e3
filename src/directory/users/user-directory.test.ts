import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forServerDatabases, serverDatabases } from '../../../test/support/databases/databases.ts';
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
import { RoomStats } from '../room-stats/room-stats.ts';
import type { DirectoryTables } from '../tables.ts';
import { RemoteUsers } from './remote-users.ts';
import { userTexts, writeUser } from './store.ts';
import { UserDirectory } from './user-directory.ts';

const v3 = '/_matrix/client/v3';

type Found = { user_id: string; display_name?: string; avatar_url?: string };

class People {
  readonly server: TestServer;

  constructor(server: TestServer) {
    this.server = server;
  }

  static async start(database: 'sqlite' | 'postgres', userDirectory: object = {}) {
    const config = { directory: { user_directory: userDirectory } } as ConfigurationOverrides;
    // The clock stands still: no search times out on a slow machine.
    return new People(await startTestServer({ database, config, clock: manualClock() }));
  }

  async named(username: string, displayname?: string): Promise<TestUser> {
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

  /** Searches once: a search waits until entries are up to date. */
  async find(user: TestUser, term: string, expected: readonly string[]): Promise<void> {
    const { body } = await this.search(user, { search_term: term });
    const found = (body['results'] as Found[]).map(({ user_id }) => user_id);
    assert.deepEqual(found, expected, term);
  }
}

for (const database of serverDatabases(import.meta.url)) {
  describe(`user directory on ${database}`, () => {
    let people: People;
    let searcher: TestUser;
    let bobby: TestUser;
    let bob: TestUser;

    before(async () => {
      people = await People.start(database);
      searcher = await people.named('searcher');
      bob = await people.named('bob');
      bobby = await people.named('robert', 'Bobby Tables');
      const hidden = await people.named('bobhidden');
      const tanaka = await people.named('tanaka', '田中さん');
      await people.room(searcher, 'private_chat', bob);
      await people.room(bobby, 'public_chat');
      await people.room(tanaka, 'public_chat');
      await people.room(hidden, 'private_chat');
    });
    after(() => people.server.stop());

    it('finds users in shared or public rooms, best match first', async () => {
      await people.find(searcher, 'bob', ['@bob:test', '@robert:test']);
      await people.find(searcher, 'BOBBY', ['@robert:test']);
      await people.find(searcher, 'tables bob', ['@robert:test']);
      await people.find(searcher, '@robert:test', ['@robert:test']);
      await people.find(searcher, 'able', ['@robert:test']);
      await people.find(searcher, 'searcher', ['@searcher:test']);
    });

    it('finds names in any script', async () => {
      await people.find(searcher, '田中', ['@tanaka:test']);
      await people.find(searcher, '中さ', ['@tanaka:test']);
    });

    it('returns current names and avatars', async () => {
      await people.setField(bobby, 'avatar_url', 'mxc://test/bobby');
      await people.setField(bobby, 'displayname', 'Little Bob');
      await people.find(searcher, 'little', ['@robert:test']);
      const answer = await people.search(searcher, { search_term: 'little' });
      const expected = {
        user_id: '@robert:test',
        display_name: 'Little Bob',
        avatar_url: 'mxc://test/bobby',
      };
      assert.deepEqual(answer.body, { results: [expected], limited: false });
      await people.find(searcher, 'tables', []);
      await people.setField(bobby, 'displayname', 'Bobby Tables');
      await people.find(searcher, 'tables', ['@robert:test']);
    });

    it('sets limited when there are more results', async () => {
      const limited = await people.search(searcher, { search_term: 'bob', limit: 1 });
      assert.deepEqual([limited.body['limited'], (limited.body['results'] as Found[]).length], [true, 1]);
      assert.equal((await people.search(searcher, { search_term: 'bob', limit: 2 })).body['limited'], false);
      for (const term of ['', ' ', '*', '"']) {
        const { body } = await people.search(searcher, { search_term: term });
        assert.deepEqual(body, { results: [], limited: false });
      }
      assert.equal((await people.search(searcher, {})).status, 400);
      assert.equal((await people.search(searcher, { search_term: 'bob', limit: -1 })).status, 400);
      const anybody = await people.server.api('POST', `${v3}/user_directory/search`, {
        body: { search_term: 'b' },
      });
      assert.equal(anybody.status, 401);
    });

    it('does not find users who left or were deactivated', async () => {
      const brief = await people.named('brief');
      const roomId = await people.room(brief, 'public_chat');
      await people.find(searcher, 'brief', ['@brief:test']);
      await people.server.api('POST', `${v3}/rooms/${roomId}/leave`, { token: brief.token, body: {} });
      await people.find(searcher, 'brief', []);
      await people.room(brief, 'public_chat');
      await people.find(searcher, 'brief', ['@brief:test']);
      await people.server.api('POST', `${v3}/account/deactivate`, {
        token: brief.token,
        body: {
          auth: {
            type: 'm.login.password',
            identifier: { type: 'm.id.user', user: 'brief' },
            password: 'correct horse',
          },
        },
      });
      await people.find(searcher, 'brief', []);
    });
  });
}

forServerDatabases(import.meta.url, ({ kind }) => {
  describe('options for the user directory', () => {
    const withPeople = async (
      options: object,
      use: (people: People, searcher: TestUser) => Promise<void>,
    ) => {
      const people = await People.start(kind, options);
      try {
        await use(people, await people.named('searcher'));
      } finally {
        await people.server.stop();
      }
    };

    it('[option: user_directory.enabled] finds no users when disabled', async () => {
      await withPeople({ enabled: false }, async (people, searcher) => {
        await people.room(await people.named('bob'), 'public_chat');
        await people.find(searcher, 'bob', []);
      });
    });

    it('[option: user_directory.search_all_users] finds all users when enabled', async () => {
      await withPeople({ search_all_users: true }, async (people, searcher) => {
        await people.named('bob');
        await people.find(searcher, 'bob', ['@bob:test']);
      });
      await withPeople({ search_all_users: false }, async (people, searcher) => {
        await people.named('bob');
        await people.room(await people.named('bobby'), 'public_chat');
        await people.find(searcher, 'bob', ['@bobby:test']);
        // The searcher is in no room.
        await people.find(searcher, 'searcher', ['@searcher:test']);
      });
    });

    it('[option: user_directory.show_locked_users] finds locked users only when enabled', async () => {
      for (const show of [false, true]) {
        await withPeople({ show_locked_users: show }, async (people, searcher) => {
          await people.room(await people.named('bob'), 'public_chat');
          await people.find(searcher, 'bob', ['@bob:test']);
          const lock = await admin(people.server, '/_matrix/client/v1/admin/lock/@bob:test', {
            locked: true,
          });
          assert.equal(lock.status, 200, lock.raw);
          await people.find(searcher, 'bob', show ? ['@bob:test'] : []);
        });
      }
    });
  });
});

/** Sends a request as a new administrator. */
async function admin(server: TestServer, path: string, body: object) {
  const nonce = String((await server.api('GET', '/_synapse/admin/v1/register')).body['nonce']);
  const account = { nonce, username: 'admin', password: 'correct horse', admin: true };
  const mac = registrationMac(account, 'shared secret');
  const made = await server.api('POST', '/_synapse/admin/v1/register', { body: { ...account, mac } });
  return server.api('PUT', path, { token: String(made.body['access_token']), body });
}

forServerDatabases(import.meta.url, (open) => {
  describe('remote users in the user directory', () => {
    const follow = async (under: RoomsUnderTest) => {
      const { engine, database, streams, clock } = under;
      const deps = { engine, database, streams, clock, log: silentLogger, serverName: 'test' };
      const remote = new RemoteUsers(deps);
      await remote.start();
      return remote;
    };
    const known = async ({ database }: RoomsUnderTest, term: string) => {
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

    it('are found by their memberships', async () => {
      const under = await RoomsUnderTest.open(open, directoryMigrations);
      const remote = await follow(under);
      const roomId = await under.room(alice);
      await under.rooms.memberships.join(dora, roomId, { given: { displayname: 'Dora' } });
      await remote.caughtUp();
      assert.deepEqual(await known(under, 'dor'), [[dora, 'Dora']]);
      assert.deepEqual(await known(under, 'alice'), []);
      await under.leave(dora, roomId);
      await under.rooms.memberships.join(dora, roomId, { given: { displayname: 'Explorer', avatar_url: 5 } });
      await remote.caughtUp();
      assert.deepEqual(await known(under, 'explo'), [[dora, 'Explorer']]);
      await remote.stop();
    });

    it('lose names that are redacted', async () => {
      const under = await RoomsUnderTest.open(open, directoryMigrations);
      const remote = await follow(under);
      const roomId = await under.room(alice);
      await under.rooms.memberships.join(dora, roomId, { given: { displayname: 'Rude' } });
      await remote.caughtUp();
      const head = await under.rooms.engine.heads.get(roomId);
      const member = await under.rooms.engine.events.get(head!.entry('m.room.member', dora)!.nid);
      await under.redact(alice, roomId, member!.event.eventId);
      await remote.caughtUp();
      assert.deepEqual(await known(under, 'rude'), []);
      assert.deepEqual(await known(under, 'dora'), [[dora, null]]);
      await remote.stop();
    });

    it('are found after a restart before their entries were written', async () => {
      const under = await RoomsUnderTest.open(open, directoryMigrations);
      const first = await follow(under);
      await first.stop();
      const roomId = await under.room(alice);
      await under.rooms.memberships.join(dora, roomId, { given: { displayname: 'Dora' } });
      const again = await under.restart(open);
      const remote = await follow(again);
      await remote.caughtUp();
      assert.deepEqual(await known(again, 'dora'), [[dora, 'Dora']]);
      await remote.stop();
    });

    /** Searches for users named Dora, one local and one remote. */
    const search = async (option: object, leaves = false) => {
      const under = await RoomsUnderTest.open(open, directoryMigrations);
      const { engine, database, streams, clock } = under;
      const remote = await follow(under);
      const stats = new RoomStats({
        engine,
        database,
        streams,
        clock,
        log: silentLogger,
        serverName: 'test',
      });
      await stats.start();
      const near = { userId: '@dora_of_here:test', displayName: undefined, avatarUrl: undefined };
      await database.transaction<DirectoryTables, void>((writer) =>
        writeUser(writer, database.fullText(userTexts), near),
      );
      const roomId = await under.room(near.userId, dora);
      if (leaves) await under.leave(near.userId, roomId);
      const account = { isDeactivated: false, isGuest: false, isLocked: false, userType: undefined };
      const people = { account: async () => account, profile: async () => ({}) };
      const options = {
        enabled: true,
        search_all_users: false,
        prefer_local_users: false,
        exclude_remote_users: false,
        show_locked_users: false,
        ...option,
      };
      const directory = new UserDirectory(
        { engine, database, indexes: [stats, remote], localUsers: people, serverName: 'test' },
        options,
      );
      const { results } = await directory.search({ userId: alice, term: 'dora', limit: 10 });
      await Promise.all([remote.stop(), stats.stop()]);
      return results.map(({ userId }) => userId);
    };

    it('are left out when this server has left their rooms', async () => {
      assert.deepEqual(await search({}, true), []);
      assert.deepEqual(await search({ search_all_users: true }, true), ['@dora_of_here:test']);
      assert.deepEqual(await search({ search_all_users: true }), [dora, '@dora_of_here:test']);
    });

    it('[option: user_directory.prefer_local_users] come after local users when configured', async () => {
      assert.deepEqual(await search({}), [dora, '@dora_of_here:test']);
      assert.deepEqual(await search({ prefer_local_users: true }), ['@dora_of_here:test', dora]);
    });

    it('[option: user_directory.exclude_remote_users] are left out when configured', async () => {
      assert.deepEqual(await search({ exclude_remote_users: true }), ['@dora_of_here:test']);
    });
  });
});
