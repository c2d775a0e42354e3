import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { administeredServer } from './test/administered-server.ts';

const clientApi = '/_matrix/client/v3';
const encode = encodeURIComponent;

for (const database of selectedDatabases(import.meta.url)) {
  describe(`on ${database}`, () => {
    const subject = administeredServer(database);
    const { succeeds, fails, file, json, request } = subject;

    describe('hearth user', () => {
      it('lists users as a table and as JSON, with filters', async () => {
        const table = await succeeds('user', 'list');
        assert.match(
          table,
          /^User {9}Display name {2}Admin {2}State {3}Created {11}Last seen\n@admin:test {2}admin {9}yes {4}active {2}\d{4}-/,
        );
        assert.deepEqual(
          (await json('user', 'list')).map(({ name }: { name: string }) => name),
          ['@admin:test', '@ann:test'],
        );
        assert.deepEqual((await json('user', 'list', '--admins')).length, 1);
        assert.match(
          await succeeds(
            'user',
            'list',
            '--name',
            'ann',
            '--order-by',
            'creation_ts',
            '--reverse',
            '--no-guests',
          ),
          /@ann:test/,
        );
        assert.equal(await succeeds('user', 'list', '--name', 'nothing'), 'No user matches.\n');
        assert.deepEqual(await json('user', 'list', '--name', 'nothing'), []);
        assert.match(await fails('user', 'list', '--order-by', 'nothing'), /answered 400/);
      });

      it('shows when a user was created', async () => {
        const [{ creation_ts: created }] = await json('user', 'list', '--name', 'ann');
        const day = new Date(created).toISOString().slice(0, 10);
        assert.match(await succeeds('user', 'show', 'ann'), new RegExp(`^creation_ts +${day} `, 'm'));
      });

      it('replaces control characters in names, which would control the terminal', async () => {
        const path = `${clientApi}/profile/${encode(subject.ann.userId)}/displayname`;
        await request('PUT', path, { displayname: 'Ann\u001b]0;owned\u0007\u202e' });
        const table = await succeeds('user', 'list', '--name', 'ann');
        assert.match(table, /Ann�]0;owned��/);
        assert.match(await succeeds('user', 'show', 'ann'), /displayname +Ann�]0;owned��/);
        await request('PUT', path, { displayname: 'Ann' });
      });

      it('cuts long names in tables, and in details shows names whole and booleans as yes or no', async () => {
        const path = `${clientApi}/profile/${encode(subject.ann.userId)}/displayname`;
        const long = 'x'.repeat(200);
        await request('PUT', path, { displayname: long });
        assert.match(await succeeds('user', 'list', '--name', 'ann'), /^@ann:test {2}x{39}… {2}- /m);
        const details = await succeeds('user', 'show', 'ann');
        assert.match(details, new RegExp(`^displayname +${long}$`, 'm'));
        assert.match(details, /^locked +no$/m);
        await request('PUT', path, { displayname: 'Ann' });
      });

      it('creates users without changing existing ones, and sets passwords', async () => {
        const password = file('new', 'first password\n');
        const created = await succeeds(
          'user',
          'create',
          'bob',
          '--password-file',
          password,
          '--display-name',
          'Bob',
          '--admin',
        );
        assert.equal(created, 'Created @bob:test as a server administrator.\n');
        assert.match(
          await fails('user', 'create', '@bob:test', '--password-file', password),
          /This user name is taken/,
        );
        const login = async (secret: string) => {
          const body = {
            type: 'm.login.password',
            identifier: { type: 'm.id.user', user: 'bob' },
            password: secret,
          };
          return (await subject.server.api('POST', `${clientApi}/login`, { body })).status;
        };
        assert.equal(await login('first password'), 200);
        const changed = await succeeds(
          'user',
          'password',
          'bob',
          '--password-file',
          // White space belongs to the password, except for the end of the line.
          file('new', ' second password \n'),
        );
        assert.equal(changed, '@bob:test has a new password. All sessions have ended.\n');
        assert.deepEqual([await login('first password'), await login(' second password ')], [403, 200]);
        assert.deepEqual(await json('user', 'sessions', 'bob').then((list) => list.length), 1);
        await succeeds('user', 'password', 'bob', '--password-file', file('new', 'third'), '--keep-sessions');
        assert.equal((await json('user', 'sessions', 'bob')).length, 1);
        assert.match(
          await fails('user', 'password', 'nobody', '--password-file', password),
          /User not found/,
        );
        assert.match(
          await fails('user', 'create', 'carl', '--password-file', file('new', '')),
          /the password is empty/,
        );
      });

      it('grants and revokes administrator rights, locks and suspends users', async () => {
        const state = async () => {
          const { admin, locked, suspended } = await json('user', 'show', 'bob');
          return { admin, locked, suspended };
        };
        await succeeds('user', 'admin', 'bob', '--revoke');
        await succeeds('user', 'lock', 'bob');
        assert.equal(
          await succeeds('user', 'suspend', 'bob'),
          '@bob:test is suspended and can only read, leave rooms and redact own messages.\n',
        );
        assert.deepEqual(await state(), { admin: false, locked: true, suspended: true });
        assert.deepEqual(
          (await json('user', 'list', '--locked')).map(({ name }: { name: string }) => name),
          ['@bob:test'],
        );
        assert.match(await succeeds('user', 'list'), /@bob:test .*locked, suspended/);
        assert.match(await succeeds('user', 'unlock', 'bob'), /unlocked/);
        await succeeds('user', 'unsuspend', 'bob');
        assert.equal(await succeeds('user', 'admin', 'bob'), '@bob:test is a server administrator.\n');
        assert.deepEqual(await state(), { admin: true, locked: false, suspended: false });
        assert.match(await fails('user', 'admin', 'admin', '--revoke'), /cannot remove your own/);
        assert.match(await fails('user', 'lock', 'nobody'), /User not found/);
      });

      it('lists the sessions of a user, ends all of them, and refuses to end a session that does not exist', async () => {
        assert.match(
          await succeeds('user', 'sessions', 'ann'),
          new RegExp(`^Session .*\\n${subject.ann.deviceId} `),
        );
        assert.match(await fails('user', 'logout', 'ann', 'NOTHING'), /@ann:test has no session NOTHING/);
        assert.equal(await succeeds('user', 'logout', 'bob'), 'Ended 1 session of @bob:test.\n');
        assert.equal(await succeeds('user', 'sessions', 'bob'), '@bob:test has no session.\n');
        assert.deepEqual(await json('user', 'logout', 'bob'), { ended: [] });
      });

      it('deactivates users only after a confirmation', async () => {
        assert.match(
          await fails('user', 'deactivate', 'bob'),
          /ends the account @bob:test.* Nothing was done: confirm with --yes/,
        );
        assert.equal(
          await succeeds('user', 'deactivate', 'bob', '--yes', '--erase'),
          '@bob:test is deactivated.\n',
        );
        assert.match(await succeeds('user', 'list', '--deactivated'), /@bob:test .*deactivated, erased/);
        assert.match(await fails('user', 'show', 'nobody'), /User not found/);
      });
    });
  });
}
