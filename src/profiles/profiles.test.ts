import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { AccountsServer, type AccountsServerOptions } from '../../test/support/servers/accounts-server.ts';
import { AccountReader } from '../accounts/index.ts';
import { migrate } from '../kernel/database/index.ts';
import { profileMigrations } from './migrations.ts';
import {
  type AvatarFiles,
  type ProfileChange,
  type ProfileOptions,
  Profiles,
  type ProfilesDeps,
  type RemoteProfiles,
} from './profiles.ts';
import { type ProfileAccessOptions, profileRoutes } from './routes.ts';
import type { ProfileTables } from './tables.ts';

interface Setup extends AccountsServerOptions {
  readonly profile?: Partial<ProfileOptions & ProfileAccessOptions>;
  readonly remote?: RemoteProfiles;
  readonly avatarFiles?: AvatarFiles;
  readonly onChange?: NonNullable<ProfilesDeps['onChange']>;
}

const defaults = {
  server_name: 'test',
  enable_set_displayname: true,
  enable_set_avatar_url: true,
  max_avatar_size: null,
  allowed_avatar_mimetypes: null,
  require_auth_for_profile_requests: false,
  limit_profile_requests_to_users_who_share_rooms: false,
};

forSelectedDatabases(import.meta.url, (open) => {
  let server: AccountsServer;
  let profiles: Profiles;
  afterEach(() => server.stop());
  const start = async ({ profile, remote, avatarFiles, onChange, ...setup }: Setup = {}) => {
    const options = { ...defaults, ...profile };
    const shareRoom = async (one: string, other: string) =>
      [one, other].every((id) => !id.includes('stranger'));
    server = await AccountsServer.start(open, {
      ...setup,
      migrations: profileMigrations,
      extensions: (environment) => {
        const accounts = new AccountReader(environment.database);
        profiles = new Profiles(
          { ...environment, accounts, remote, avatarFiles, ...(onChange && { onChange }) },
          options,
        );
        return { lifecycleHooks: [profiles] };
      },
      routes: () => profileRoutes({ profiles, rooms: { shareRoom } }, options),
    });
  };
  const get = (path: string, token?: string) => server.call('GET', `/profile/${path}`, { token });
  const set = (token: string, path: string, body: unknown) =>
    server.call('PUT', `/profile/${path}`, { token, body });
  const statusAndErrcode = ({ status, body }: { status: number; body: Record<string, unknown> }) => [
    status,
    body['errcode'],
  ];

  describe('profiles', () => {
    it('sets the localpart of a new user as the display name, and answers 404 for an unknown user', async () => {
      await start();
      await server.register('alice');
      assert.deepEqual((await get('@alice:test')).body, { displayname: 'alice' });
      assert.deepEqual(statusAndErrcode(await get('@bob:test')), [404, 'M_NOT_FOUND']);
      assert.deepEqual(statusAndErrcode(await get('bob')), [400, 'M_INVALID_PARAM']);
    });

    it('shortens to 256 characters a display name that was stored without a check of its length', async () => {
      // PostgreSQL cannot compress this text so that it fits into an index.
      const long = Array.from({ length: 100 }, (_, n) => hash('sha256', `${n}`, 'base64')).join('');
      const database = await open(profileMigrations.filter(({ name }) => name < 'profiles/0003'));
      const names = { '@ann:test': long, '@ben:test': `${'x'.repeat(255)}🦊🦊`, '@eva:test': 'Eva' };
      await database.transaction<ProfileTables, void>(async (writer) => {
        for (const [user_id, name] of Object.entries(names)) {
          const row = { user_id, field: 'displayname', value: JSON.stringify(name) };
          await writer.insertInto('profile_fields').values(row).execute();
        }
      });
      await migrate(database, profileMigrations);
      const rows = await database.reader<ProfileTables>().selectFrom('profile_fields').selectAll().execute();
      const found = rows.map(({ user_id: userId, value }) => [userId, JSON.parse(value)]);
      assert.deepEqual(Object.fromEntries(found), {
        '@ann:test': long.slice(0, 256),
        '@ben:test': `${'x'.repeat(255)}\ufffd`,
        '@eva:test': 'Eva',
      });
      await start();
      const account = { userId: '@ann:test', isGuest: false, displayName: long };
      await server.streams.write((writer, publish) => profiles.registered(writer, publish, account));
      assert.deepEqual(await profiles.read('@ann:test'), { displayname: long.slice(0, 256) });
    });

    it('stores display names, avatars and other profile fields of any JSON', async () => {
      await start();
      const { token } = await server.register('alice');
      const changes: ProfileChange[] = [];
      profiles.profileStream.subscribe((change) => changes.push(change));
      const fields = {
        displayname: 'Alice 🦊',
        avatar_url: 'mxc://test/abc',
        'm.tz': 'Europe/London',
        'org.example.any': { list: [1, null], text: 'a\0b' },
        'org.example.none': null,
      };
      for (const [field, value] of Object.entries(fields)) {
        assert.deepEqual((await set(token, `@alice:test/${field}`, { [field]: value })).body, {});
        assert.deepEqual((await get(`@alice:test/${field}`)).body, { [field]: value });
      }
      assert.deepEqual((await get('@alice:test')).body, fields);
      assert.deepEqual(
        changes,
        Object.keys(fields).map((field) => ({ userId: '@alice:test', field })),
      );
    });

    it('stores any text as the avatar URL of a profile', async () => {
      await start();
      const { token } = await server.register('alice');
      for (const url of ['https://example.org/a.png', 'mxc://test', 'face.png']) {
        assert.equal((await set(token, '@alice:test/avatar_url', { avatar_url: url })).status, 200, url);
        assert.deepEqual((await get('@alice:test/avatar_url')).body, { avatar_url: url });
        assert.equal((await get('@alice:test')).body['avatar_url'], url);
      }
    });

    it('deletes profile fields on DELETE, and display names and avatars also when they are set to an empty string', async () => {
      await start();
      const { token } = await server.register('alice');
      await set(token, '@alice:test/org.example.x', { 'org.example.x': 1 });
      await set(token, '@alice:test/displayname', { displayname: '' });
      for (const avatar_url of ['mxc://test/abc', ''])
        assert.equal((await set(token, '@alice:test/avatar_url', { avatar_url })).status, 200);
      for (let i = 0; i < 2; i++) {
        const answer = await server.call('DELETE', '/profile/@alice:test/org.example.x', { token });
        assert.deepEqual([answer.status, answer.body], [200, {}]);
      }
      assert.deepEqual((await get('@alice:test')).body, {});
      for (const field of ['displayname', 'avatar_url', 'm.tz', 'org.example.x', '__proto__']) {
        const { status, body } = await get(`@alice:test/${field}`);
        assert.deepEqual([status, body], [200, {}], `unset ${field}`);
      }
      assert.deepEqual(statusAndErrcode(await get('@bob:test/displayname')), [404, 'M_NOT_FOUND']);
    });

    it('refuses invalid profile fields and values, and too large profiles, with the specified errcodes', async () => {
      await start();
      const { token } = await server.register('alice');
      for (const [field, body, errcode] of [
        ['displayname', {}, 'M_MISSING_PARAM'],
        ['displayname', { avatar_url: 'x' }, 'M_MISSING_PARAM'],
        ['displayname', { displayname: 5 }, 'M_INVALID_PARAM'],
        ['displayname', { displayname: null }, 'M_INVALID_PARAM'],
        ['displayname', { displayname: 'x'.repeat(257) }, 'M_INVALID_PARAM'],
        ['avatar_url', { avatar_url: `mxc://test/${'x'.repeat(1000)}` }, 'M_INVALID_PARAM'],
        ['avatar_url', { avatar_url: 5 }, 'M_INVALID_PARAM'],
        ['nodots', { nodots: 1 }, 'M_INVALID_PARAM'],
        ['Upper.Case', { 'Upper.Case': 1 }, 'M_INVALID_PARAM'],
        [`a.${'b'.repeat(254)}`, { [`a.${'b'.repeat(254)}`]: 1 }, 'M_KEY_TOO_LARGE'],
        ['a.b', { 'a.b': 'x'.repeat(65_530) }, 'M_PROFILE_TOO_LARGE'],
        ['a.b', [], 'M_BAD_JSON'],
      ] as const) {
        assert.deepEqual(
          statusAndErrcode(await set(token, `@alice:test/${field}`, body)),
          [400, errcode],
          field,
        );
      }
      const halfOfMaximum = 'x'.repeat(33_000);
      assert.equal((await set(token, '@alice:test/a.b', { 'a.b': halfOfMaximum })).status, 200);
      assert.equal((await set(token, '@alice:test/a.b', { 'a.b': halfOfMaximum })).status, 200);
      assert.deepEqual(statusAndErrcode(await set(token, '@alice:test/a.c', { 'a.c': halfOfMaximum })), [
        400,
        'M_PROFILE_TOO_LARGE',
      ]);
    });

    it('lets only the owner of a profile and administrators change the profile', async () => {
      await start();
      const alice = await server.register('alice');
      await server.register('bob');
      const body = { displayname: 'Mallory' };
      assert.deepEqual(statusAndErrcode(await set(alice.token, '@bob:test/displayname', body)), [
        403,
        'M_FORBIDDEN',
      ]);
      const denied = await server.call('DELETE', '/profile/@bob:test/displayname', { token: alice.token });
      assert.deepEqual(statusAndErrcode(denied), [403, 'M_FORBIDDEN']);
      const admin = await server.registerAdmin();
      assert.equal((await set(admin.token, '@bob:test/displayname', body)).status, 200);
      assert.deepEqual(statusAndErrcode(await set(admin.token, '@nobody:test/displayname', body)), [
        404,
        'M_NOT_FOUND',
      ]);
      assert.deepEqual(statusAndErrcode(await set(admin.token, '@bob:elsewhere/displayname', body)), [
        404,
        'M_NOT_FOUND',
      ]);
    });

    it('lets guests set their display name, but no other profile field', async () => {
      await start();
      const { body } = await server.call('POST', '/register?kind=guest', { body: {} });
      const userId = body['user_id'];
      const token = body['access_token'] as string;
      assert.deepEqual((await get(`${userId}`)).body, {});
      assert.equal((await set(token, `${userId}/displayname`, { displayname: 'Gast' })).status, 200);
      const denied = await set(token, `${userId}/m.tz`, { 'm.tz': 'UTC' });
      assert.deepEqual(statusAndErrcode(denied), [403, 'M_GUEST_ACCESS_FORBIDDEN']);
    });

    it('refuses changes of display names and avatars where the options forbid them, except by administrators [option: enable_set_displayname, enable_set_avatar_url]', async () => {
      await start({ profile: { enable_set_displayname: false, enable_set_avatar_url: false } });
      const { token } = await server.register('alice');
      const body = { displayname: 'A', avatar_url: 'mxc://test/a', 'm.tz': 'UTC' };
      assert.deepEqual(statusAndErrcode(await set(token, '@alice:test/displayname', body)), [
        403,
        'M_FORBIDDEN',
      ]);
      assert.deepEqual(statusAndErrcode(await set(token, '@alice:test/avatar_url', body)), [
        403,
        'M_FORBIDDEN',
      ]);
      assert.equal((await set(token, '@alice:test/m.tz', body)).status, 200);
      const admin = await server.registerAdmin();
      assert.equal((await set(admin.token, '@admin:test/displayname', body)).status, 200);
    });

    it('accepts only avatars of an allowed size and media type [option: max_avatar_size, allowed_avatar_mimetypes]', async () => {
      const files: Record<string, { size: number; mimeType: string }> = {
        'mxc://test/good': { size: 10, mimeType: 'image/png' },
        'mxc://test/large': { size: 11, mimeType: 'image/png' },
        'mxc://test/text': { size: 1, mimeType: 'text/plain' },
      };
      await start({
        profile: { max_avatar_size: 10, allowed_avatar_mimetypes: ['image/png'] },
        avatarFiles: { describe: async (uri) => files[uri] },
      });
      const { token } = await server.register('alice');
      for (const [avatar_url, status] of [
        ['mxc://test/good', 200],
        ['mxc://test/large', 403],
        ['mxc://test/text', 403],
        ['mxc://elsewhere/x', 403],
      ] as const) {
        assert.equal((await set(token, '@alice:test/avatar_url', { avatar_url })).status, status, avatar_url);
      }
    });

    it('shows profiles only to authenticated users, or only to users who share a room [option: require_auth_for_profile_requests, limit_profile_requests_to_users_who_share_rooms]', async () => {
      await start({ profile: { require_auth_for_profile_requests: true } });
      const alice = await server.register('alice');
      assert.deepEqual(statusAndErrcode(await get('@alice:test')), [401, 'M_MISSING_TOKEN']);
      assert.equal((await get('@alice:test', alice.token)).status, 200);
      await server.stop();
      await start({ profile: { limit_profile_requests_to_users_who_share_rooms: true } });
      const bob = await server.register('bob');
      const stranger = await server.register('stranger');
      assert.deepEqual(statusAndErrcode(await get('@bob:test/displayname')), [401, 'M_MISSING_TOKEN']);
      assert.deepEqual(statusAndErrcode(await get('@bob:test/displayname', stranger.token)), [
        403,
        'M_FORBIDDEN',
      ]);
      assert.equal((await get('@stranger:test', stranger.token)).status, 200);
      assert.equal((await get('@bob:test', bob.token)).status, 200);
    });

    it('changes a profile in one transaction with the onChange hook, and not at all when the hook fails', async () => {
      const notifiedUsers: string[] = [];
      const onChange = async (_writer: unknown, userId: string) => {
        notifiedUsers.push(userId);
        if (notifiedUsers.length === 3) throw new Error('the hook fails');
      };
      await start({ onChange });
      const { token } = await server.register('alice');
      await set(token, '@alice:test/displayname', { displayname: 'A' });
      await server.call('DELETE', '/profile/@alice:test/displayname', { token });
      await server.call('DELETE', '/profile/@alice:test/displayname', { token });
      assert.deepEqual(notifiedUsers, ['@alice:test', '@alice:test']);
      assert.equal((await set(token, '@alice:test/displayname', { displayname: 'B' })).status, 500);
      assert.deepEqual((await get('@alice:test')).body, {});
    });

    it('fetches profiles of remote users from their server, and answers 404 for them without federation', async () => {
      await start({ remote: { fetch: async (userId, field) => ({ displayname: `${userId} ${field}` }) } });
      assert.deepEqual((await get('@bob:elsewhere/displayname')).body, {
        displayname: '@bob:elsewhere displayname',
      });
      await server.stop();
      await start();
      assert.deepEqual(statusAndErrcode(await get('@bob:elsewhere')), [404, 'M_NOT_FOUND']);
    });

    it('deletes the profile of an account that is deactivated with erase: true, and keeps it without erase', async () => {
      await start();
      const { userId } = await server.register('alice');
      await server.slice.accounts.deactivate(userId, { erase: false, byAdmin: false });
      assert.deepEqual(statusAndErrcode(await get('@alice:test')), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await profiles.read(userId), { displayname: 'alice' });
      await server.slice.accounts.deactivate(userId, { erase: true, byAdmin: false });
      assert.deepEqual(await profiles.read(userId), {});
    });
  });
});
