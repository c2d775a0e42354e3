import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from './support/databases/databases.ts';
import { startTestServer, type TestServer } from './support/servers/server.ts';
import { enc, TestClient } from './support/users/test-client.ts';

const password = (user: string) => ({
  type: 'm.login.password',
  identifier: { type: 'm.id.user', user },
  password: 'correct horse',
});

forSelectedDatabases(import.meta.url, ({ kind }) => {
  let server: TestServer;
  let anna: TestClient;
  before(async () => {
    server = await startTestServer({ database: kind });
    anna = await TestClient.register(server, 'anna');
  });
  after(() => server.stop());

  const dataOf = (events: readonly { type: string; content: unknown }[] = []) =>
    events.filter(({ type }) => type.includes('example') || type.includes('notification_settings'));

  describe('deleted account data (MSC3391)', () => {
    it('returns deleted account data as {} in incremental syncs, and not at all in initial syncs', async () => {
      const roomId = await anna.createRoom();
      const global = `/user/${enc(anna.id)}/account_data/org.example.a`;
      const ofRoom = `/user/${enc(anna.id)}/rooms/${enc(roomId)}/account_data/org.example.b`;
      for (const path of [global, ofRoom]) await anna.do('PUT', path, { a: 1 });
      const since = (await anna.sync()).next_batch;
      await anna.do('DELETE', global);
      await anna.do('PUT', ofRoom, {});
      const next = await anna.sync(since);
      assert.deepEqual(dataOf(next.account_data?.events), [{ type: 'org.example.a', content: {} }]);
      const room = next.rooms?.join?.[roomId];
      assert.deepEqual(dataOf(room?.account_data.events), [{ type: 'org.example.b', content: {} }]);
      const first = await anna.sync();
      assert.deepEqual(dataOf(first.account_data?.events), []);
      assert.deepEqual(dataOf(first.rooms?.join?.[roomId]?.account_data.events), []);
      const { unstable_features: features } = await anna
        .request('GET', '/_matrix/client/versions', undefined)
        .then(({ body }) => body as { unstable_features: Record<string, boolean> });
      assert.deepEqual([features['org.matrix.msc3391'], features['org.matrix.msc3874']], [true, true]);
    });
  });

  describe('notification settings of devices (MSC3890)', () => {
    it('deletes the notification settings of a device when the device is deleted or logs out', async () => {
      const login = async (device_id: string) => {
        const { body } = await server.api('POST', '/_matrix/client/v3/login', {
          body: { ...password('anna'), device_id },
        });
        return String(body['access_token']);
      };
      await login('PHONE');
      const laptop = await login('LAPTOP');
      const prefixes = ['m.local_notification_settings.', 'org.matrix.msc3890.local_notification_settings.'];
      const path = (type: string) => `/user/${enc(anna.id)}/account_data/${type}`;
      const devicesWithSettings = async () => {
        const statusByDevice: [string, number][] = [];
        for (const device of ['PHONE', 'LAPTOP', 'TV']) {
          for (const prefix of prefixes) {
            statusByDevice.push([device, (await anna.call('GET', path(prefix + device))).status]);
          }
        }
        return statusByDevice.filter(([, status]) => status === 200).map(([device]) => device);
      };
      for (const device of ['PHONE', 'LAPTOP', 'TV']) {
        for (const prefix of prefixes) await anna.do('PUT', path(prefix + device), { is_silenced: true });
      }
      const since = (await anna.sync()).next_batch;
      const challenge = await anna.call('DELETE', '/devices/PHONE');
      const auth = { ...password('anna'), session: challenge.body['session'] };
      await anna.do('DELETE', '/devices/PHONE', { auth });
      assert.deepEqual(await devicesWithSettings(), ['LAPTOP', 'LAPTOP', 'TV', 'TV']);
      assert.deepEqual(
        dataOf((await anna.sync(since)).account_data?.events),
        prefixes.map((prefix) => ({ type: `${prefix}PHONE`, content: {} })),
      );
      await server.api('POST', '/_matrix/client/v3/logout', { token: laptop });
      assert.deepEqual(await devicesWithSettings(), ['TV', 'TV']);
    });
  });

  describe('rel_types in filters of /messages (MSC3874)', () => {
    it('selects events of /messages by the rel_type of their own relation', async () => {
      const roomId = await anna.createRoom();
      const root = await anna.say(roomId, 'root');
      const relate = (rel_type: string, body: string) =>
        anna.send(roomId, 'm.room.message', {
          body,
          msgtype: 'm.text',
          'm.relates_to': { rel_type, event_id: root },
        });
      await relate('m.thread', 'in the thread');
      await relate('m.reference', 'a reference');
      const bodiesWith = async (filter: object) => {
        const query = {
          dir: 'f',
          limit: 50,
          filter: JSON.stringify({ types: ['m.room.message'], ...filter }),
        };
        const { chunk } = await anna.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, query);
        return (chunk as { content: { body: string } }[]).map(({ content }) => content.body);
      };
      for (const prefix of ['', 'org.matrix.msc3874.']) {
        assert.deepEqual(await bodiesWith({ [`${prefix}rel_types`]: ['m.thread'] }), ['in the thread']);
        assert.deepEqual(await bodiesWith({ [`${prefix}not_rel_types`]: ['m.thread'] }), [
          'root',
          'a reference',
        ]);
      }
    });
  });
});
