import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { PushGateway } from '../../src/pushers/test/push-gateway.ts';
import { HearthProcess } from '../clients/hearth-process.ts';
import { callApi } from '../support/servers/api-call.ts';

describe('push notifications of a server that is killed', () => {
  let hearth: HearthProcess | undefined;
  let gateway: PushGateway | undefined;
  after(async () => {
    await hearth?.remove();
    await gateway?.stop();
  });

  it('sends the notifications of all events in order, and at most one of them twice, although the server is killed before all are sent', async () => {
    gateway = await PushGateway.start();
    hearth = await HearthProcess.create({ ip_range_whitelist: ['127.0.0.0/8'], push: { jitter_delay: 0 } });
    await hearth.start();
    const call = async (method: string, path: string, body: object, token?: string) => {
      const request = { body, ...(token !== undefined && { token }) };
      const answer = await callApi(hearth!.url, method, `/_matrix/client/v3${path}`, request);
      assert.equal(answer.status, 200, answer.raw);
      return answer.body;
    };
    const register = async (username: string) => {
      const auth = { type: 'm.login.dummy' };
      return String(
        (await call('POST', '/register', { username, password: 'correct horse', auth }))['access_token'],
      );
    };
    const [anna, ben] = [await register('anna'), await register('ben')];
    const { room_id } = await call('POST', '/createRoom', { preset: 'public_chat' }, anna);
    const room = encodeURIComponent(String(room_id));
    await call('POST', `/join/${room}`, {}, ben);
    const pusher = { kind: 'http', app_id: 'app', pushkey: 'key', lang: 'en' };
    const names = { app_display_name: 'App', device_display_name: 'Phone' };
    const data = { url: gateway.url(), format: 'event_id_only' };
    await call('POST', '/pushers/set', { ...pusher, ...names, data }, ben);
    let number = 0;
    const sendMessage = async () => {
      const body = { msgtype: 'm.text', body: 'Hello' };
      const path = `/rooms/${room}/send/m.room.message/${++number}`;
      return String((await call('PUT', path, body, anna))['event_id']);
    };

    // The gateway has received the first event, and never answers; the other events wait behind it.
    gateway.behaviour = 'never answer';
    const sent = [await sendMessage()];
    await gateway.attempted(1);
    for (let index = 0; index < 10; index++) sent.push(await sendMessage());
    await hearth.kill();
    gateway.behaviour = 'accept';
    await hearth.start();
    await gateway.notification(sent.length - 1);
    assert.deepEqual(eventsOf(gateway), sent);

    // This kill interrupts the server at any point between the last event and its notification.
    for (let index = 0; index < 10; index++) sent.push(await sendMessage());
    await hearth.kill();
    await hearth.start();
    await gateway.until(() => new Set(eventsOf(gateway!)).size === sent.length);
    assert.deepEqual([...new Set(eventsOf(gateway))], sent);
    assert.ok(gateway.received.length <= sent.length + 1, 'more than one event was sent twice');
  });
});

const eventsOf = ({ received }: PushGateway) =>
  received.flatMap(({ event_id }) => (event_id === undefined ? [] : [event_id]));
