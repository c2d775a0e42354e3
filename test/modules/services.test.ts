import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { ModuleApi, ModuleJob, ModuleStore, StoreMigration } from 'hearth/module';
import { eventually } from '../clients/eventually.ts';
import { skippableClock } from '../support/clocks/skippable-clock.ts';
import { selectedDatabases } from '../support/databases/databases.ts';
import { MailServer } from '../support/network/mail-server.ts';
import { startTestServer, type TestServer } from '../support/servers/server.ts';
import { registrations } from './registering-module.ts';

const file = join(import.meta.dirname, 'registering-module.ts');

for (const database of selectedDatabases(import.meta.url)) {
  describe(`services for modules on ${database}`, () => {
    let server: TestServer;
    let mailServer: MailServer;
    let api: ModuleApi;
    let store: ModuleStore;
    const clock = skippableClock();
    const jobRuns: (Pick<ModuleJob, 'payload' | 'attempt'> & { readonly name: string })[] = [];
    const appliedMigrations: string[] = [];
    const checkedAddresses: unknown[] = [];
    const migrations: StoreMigration[] = [
      {
        name: 'one',
        async up(opened) {
          appliedMigrations.push('one');
          await opened.set('version', 1);
        },
      },
    ];

    before(async () => {
      mailServer = await MailServer.start();
      registrations.set('services', async (moduleApi) => {
        api = moduleApi;
        store = await api.stores.open('test', migrations);
        const run =
          (name: string) =>
          ({ payload, attempt }: ModuleJob) => {
            jobRuns.push({ name, payload, attempt });
            if (payload === 'fails' && attempt === 1) throw new Error('on purpose');
          };
        api.jobs.register('greet', run('greet'));
        api.registerAccountRules({
          mayUseAddress(medium, address, isRegistration) {
            checkedAddresses.push([medium, address, isRegistration]);
            return address.startsWith('denied')
              ? { errcode: 'M_THREEPID_DENIED', error: 'Not this address' }
              : 'allow';
          },
        });
        api.jobs.repeat('hourly', 3_600_000, run('hourly'));
      });
      const config = {
        modules: { modules: [{ module: file, config: { key: 'services' } }] },
        mail: {
          email: {
            smtp_host: '127.0.0.1',
            smtp_port: mailServer.port,
            notif_from: 'no-reply@example.org',
          },
        },
      };
      server = await startTestServer({ database, clock, config });
    });
    after(async () => {
      await server.stop();
      await mailServer.stop();
    });

    /** Advances the clock step by step until a condition holds. */
    const advanceUntil = (milliseconds: number, what: string, holds: () => boolean) =>
      eventually(what, () => {
        if (holds()) return true;
        clock.advance(milliseconds);
        return false;
      });

    it('stores values of modules by key, and lists them in the order of the bytes of their keys', async () => {
      assert.equal(await store.get('none'), undefined);
      await store.write([
        { key: 'a/2', value: { list: [1, null, 'x\0y'] } },
        { key: 'a/1', value: 'one' },
        { key: 'a/Z', value: 3 },
        { key: 'b/ä', value: true },
        { key: 'gone', value: 1 },
      ]);
      assert.deepEqual(await store.get('a/2'), { list: [1, null, 'x\0y'] });
      await store.delete('gone');
      const keys = async (query?: Parameters<ModuleStore['list']>[0]) =>
        (await store.list(query)).map(({ key }) => key);
      assert.deepEqual(await keys(), ['a/1', 'a/2', 'a/Z', 'b/ä', 'version']);
      assert.deepEqual(await keys({ prefix: 'a/', after: 'a/1' }), ['a/2', 'a/Z']);
      assert.deepEqual(await keys({ prefix: 'a/', limit: 1 }), ['a/1']);
      const otherStore = await api.stores.open('other');
      assert.deepEqual(await otherStore.list(), []);
    });

    it('writes all changes of a batch of a module or none, and updates a value without losing a concurrent update', async () => {
      const change = (count: unknown) => Number(count ?? 0) + 1;
      await Promise.all(Array.from({ length: 20 }, () => store.update('count', change)));
      assert.equal(await store.get('count'), 20);
      assert.equal(await store.update('count', () => undefined), undefined);
      assert.equal(await store.get('count'), undefined);
      const cyclicValue: unknown[] = [];
      cyclicValue.push(cyclicValue);
      for (const broken of [
        { key: '', value: 1 },
        { key: 'x'.repeat(501), value: 1 },
        { key: 'x', value: 'x'.repeat(1024 * 1024) },
        { key: 'x', value: cyclicValue as never },
      ]) {
        await assert.rejects(store.write([{ key: 'first', value: 1 }, broken]));
      }
      assert.equal(await store.get('first'), undefined);
      await assert.rejects(
        store.update('count', () => {
          throw new RangeError('own');
        }),
        RangeError,
      );
      await assert.rejects(api.stores.open('No name'), /is not a name of a store/);
    });

    it('applies each migration of the store of a module once, and a failed migration again', async () => {
      assert.deepEqual(appliedMigrations, ['one']);
      assert.equal(await store.get('version'), 1);
      let fails = true;
      const secondMigration: StoreMigration = {
        name: 'two',
        async up(opened) {
          appliedMigrations.push('two');
          await opened.set('version', 2);
          if (fails) throw new Error('on purpose');
        },
      };
      await assert.rejects(api.stores.open('test', [...migrations, secondMigration]), /on purpose/);
      fails = false;
      await api.stores.open('test', [...migrations, secondMigration]);
      await api.stores.open('test', [...migrations, secondMigration]);
      assert.deepEqual(appliedMigrations, ['one', 'two', 'two']);
    });

    it('runs jobs of modules in the background, a single job for each key, again after a failure, and at intervals', async () => {
      const greetings = () => jobRuns.filter(({ name }) => name === 'greet');
      await api.jobs.schedule('greet', { payload: 'fails' });
      await advanceUntil(1_000, 'two attempts', () => greetings().length >= 2);
      assert.deepEqual(greetings(), [
        { name: 'greet', payload: 'fails', attempt: 1 },
        { name: 'greet', payload: 'fails', attempt: 2 },
      ]);
      await api.jobs.schedule('greet', { payload: { name: 'anna' }, key: 'anna', delay: 60_000 });
      await api.jobs.schedule('greet', { payload: 'not this one', key: 'anna', delay: 60_000 });
      await advanceUntil(10_000, 'the job of the key', () => greetings().length >= 3);
      assert.deepEqual(greetings().slice(2), [{ name: 'greet', payload: { name: 'anna' }, attempt: 1 }]);
      await advanceUntil(3_600_000, 'the repeated job', () => jobRuns.some(({ name }) => name === 'hourly'));
      await assert.rejects(api.jobs.schedule('no name!'), /is not a name of a job/);
    });

    it('lets modules decide which addresses accounts may have', async () => {
      const request = (path: string, email: string) =>
        server.api('POST', `/_matrix/client/v3/${path}/email/requestToken`, {
          body: { client_secret: 'secret', send_attempt: 1, email },
        });
      for (const path of ['register', 'account/3pid']) {
        const { status, body } = await request(path, 'denied@example.org');
        assert.deepEqual([status, body['errcode']], [403, 'M_THREEPID_DENIED']);
      }
      assert.equal((await request('register', 'anna@example.org')).status, 200);
      assert.deepEqual(checkedAddresses, [
        ['email', 'denied@example.org', true],
        ['email', 'denied@example.org', false],
        ['email', 'anna@example.org', true],
      ]);
      await mailServer.mail(0);
    });

    it('sends mails of modules through the mail server of the configuration', async () => {
      assert.equal(api.mail.isEnabled, true);
      await api.mail.send({ to: 'anna@example.org', subject: '100 % sure', text: 'Hello <you>' });
      const mail = await mailServer.mail(1);
      assert.deepEqual(mail.to, ['anna@example.org']);
      assert.equal(mail.content.subject, '100 % sure');
      assert.equal(mail.content.text?.trim(), 'Hello <you>');
      assert.match(String(mail.content.html), /Hello &lt;you&gt;/);
    });

    it('lets modules create and join rooms, and read and set profiles and account data of local users', async () => {
      const [alice, bob] = [await server.register('alice'), await server.register('bob')];
      const settings = { name: 'Lobby', topic: 'Hello', alias: 'lobby', preset: 'public_chat' as const };
      const initialState = [{ type: 'org.test.kind', stateKey: '', content: { kind: 'lobby' } }];
      const roomId = await api.rooms.create(alice.userId, { ...settings, initialState });
      assert.equal(await api.rooms.resolve('#lobby:test'), roomId);
      assert.equal(await api.rooms.join(bob.userId, '#lobby:test'), roomId);
      const state = api.rooms.state(roomId);
      assert.equal(await state.membership(bob.userId), 'join');
      assert.deepEqual((await state.get('org.test.kind', ''))?.content, { kind: 'lobby' });
      await api.users.setProfile(bob.userId, 'displayname', 'Robert');
      assert.equal((await api.users.profile(bob.userId))['displayname'], 'Robert');
      assert.equal((await state.get('m.room.member', bob.userId))?.content['displayname'], 'Robert');
      await api.users.setAccountData(bob.userId, 'm.direct', { [alice.userId]: [roomId] });
      const path = `/_matrix/client/v3/user/${bob.userId}/account_data/m.direct`;
      const { body } = await server.api('GET', path, { token: bob.token });
      assert.deepEqual(await api.users.accountData(bob.userId, 'm.direct'), body);
      assert.deepEqual(body, { [alice.userId]: [roomId] });
      assert.equal(await api.users.accountData(bob.userId, 'm.direct', roomId), undefined);
      for (const callWithUnknownId of [
        () => api.rooms.create('@nobody:test'),
        () => api.rooms.join('@nobody:test', roomId),
        () => api.users.setProfile('@nobody:test', 'displayname', 'x'),
        () => api.rooms.resolve('#nowhere:test'),
      ]) {
        await assert.rejects(callWithUnknownId, { errcode: 'M_NOT_FOUND' });
      }
    });

    it('rejects requests of modules to addresses that are not allowed', async () => {
      await assert.rejects(api.http.fetch(`${server.baseUrl}/health`), /not allowed/);
    });
  });
}
