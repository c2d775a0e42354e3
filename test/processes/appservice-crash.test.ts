/** Kills the server between events and transactions to an application service. */
import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { HearthProcess } from '../clients/hearth-process.ts';
import { ApplicationService } from '../support/other-servers/application-service.ts';
import { callApi } from '../support/servers/api-call.ts';

let irc: ApplicationService;
let server: HearthProcess;
before(async () => {
  irc = await ApplicationService.start('irc');
  server = await HearthProcess.create({ app_service_config_files: [irc.file] });
  await server.start();
});
after(async () => {
  await server?.remove();
  await irc.stop();
});

const call = async (method: string, path: string, body: object, userId?: string) => {
  const query = userId === undefined ? {} : { user_id: userId };
  const answer = await callApi(server.url, method, `/_matrix/client/v3${path}`, {
    token: irc.token,
    query,
    body,
  });
  assert.equal(answer.status, 200, answer.raw);
  return answer.body;
};

it('kill -9 between an event and its transaction to an application service neither loses nor duplicates events, and transactions are repeated unchanged', async () => {
  const user = '@irc_ann:hearth.test';
  await call('POST', '/register', {
    type: 'm.login.application_service',
    username: 'irc_ann',
    inhibit_login: true,
  });
  const roomId = String((await call('POST', '/createRoom', {}, user))['room_id']);
  const sent: string[] = [];
  const sendMessage = async () => {
    const path = `/rooms/${roomId}/send/m.room.message/${sent.length}`;
    sent.push(String((await call('PUT', path, { msgtype: 'm.text', body: 'x' }, user))['event_id']));
  };
  const sendMessages = async (count: number) => {
    for (let number = 0; number < count; number++) await sendMessage();
  };
  const received = () =>
    irc.events.filter(({ type }) => type === 'm.room.message').map(({ event_id }) => event_id);
  const restart = async () => {
    await server.kill();
    irc.respond = () => undefined;
    await server.start();
  };

  await sendMessages(10);
  await irc.until(() => received().includes(sent.at(-1)));

  // The service has received a transaction, and the server is killed before it receives the response.
  const answering = Promise.withResolvers<undefined>();
  const earlierTransactions = irc.transactions.length;
  irc.respond = () => answering.promise;
  await sendMessages(5);
  await irc.until(() => irc.transactions.length > earlierTransactions);
  await sendMessages(5);
  await restart();
  answering.resolve(undefined);
  await irc.until(() => received().includes(sent.at(-1)));

  // The service is down when the server is killed.
  irc.respond = () => ({ status: 502, body: {} });
  await sendMessages(150);
  await restart();
  await sendMessages(1);
  await irc.until(() => received().includes(sent.at(-1)));

  assert.deepEqual(received(), sent);
  const bodies = new Map<string, string>();
  for (const { path, body } of irc.transactions) {
    const text = JSON.stringify(body);
    assert.equal(bodies.get(path) ?? text, text, `${path} was repeated with another content`);
    bodies.set(path, text);
  }
  const transactionIds = irc.transactions.map(({ path }) => Number(path.split('/').at(-1)));
  assert.deepEqual(
    transactionIds.toSorted((a, b) => a - b),
    transactionIds,
    'no transaction overtakes another',
  );
});
